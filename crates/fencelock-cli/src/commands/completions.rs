use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Print a shell's completions
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock completions bash > /etc/bash_completion.d/fencelock
  fencelock completions zsh > ~/.zfunc/_fencelock
  fencelock completions fish > ~/.config/fish/completions/fencelock.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fencelock", &mut text);
    let text = String::from_utf8_lossy(&text);
    context.output.text(&text)?;
    Ok(Exit::Done)
}
