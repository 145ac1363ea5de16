//! One module for each command: its arguments, its answer, and what it does.

pub(crate) mod run;
mod welcome;

use crate::args::Command;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Does what was typed.
pub(crate) async fn run(command: Option<Command>, context: &Context<'_>) -> Result<Exit, Failure> {
    match command {
        None => welcome::run(context),
        Some(Command::Run(args)) => run::run(args, context).await,
    }
}
