use fencelock::spi::LockKey;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::LockView;

/// Show who holds a lock, without taking it
///
/// What is shown may be out of date when you read it: decide nothing by it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock inspect nightly-report
  fencelock inspect nightly-report --json | jq -r .holder.token")]
pub(crate) struct Args {
    /// The lock
    key: LockKey,
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let info = context.admin().await?.read(args.key).await?;
    context.output.answer(&LockView::from(&info))?;
    Ok(Exit::Done)
}
