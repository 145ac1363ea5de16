//! `fencelock run`: holds a lock while a command runs.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Hold a lock while a command runs
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// What to lock
    key: String,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let client = context.store()?.connect().await?;
    let guard = client.acquire(args.key.as_str()).await?;
    let command = args.command.split_first();
    let status = command
        .map(|(program, arguments)| std::process::Command::new(program).args(arguments).status());
    guard.release().await?;
    client.shutdown().await;
    let status = status.transpose()?.and_then(|status| status.code());
    Ok(status
        .and_then(|code| u8::try_from(code).ok())
        .map_or(Exit::Broken, Exit::Command))
}
