//! One module for each command: its arguments, its answer, and what it does.

pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod reap;
pub(crate) mod recover;
pub(crate) mod release;
pub(crate) mod revocations;
pub(crate) mod revoke;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod wait;
pub(crate) mod waiters;
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
        Some(Command::Inspect(args)) => inspect::run(args, context).await,
        Some(Command::List(args)) => list::run(args, context).await,
        Some(Command::Waiters(args)) => waiters::run(args, context).await,
        Some(Command::Sessions(args)) => sessions::run(args, context).await,
        Some(Command::Revoke(args)) => revoke::run(args, context).await,
        Some(Command::Revocations(args)) => revocations::run(args, context).await,
        Some(Command::Release(args)) => release::run(args, context).await,
        Some(Command::Wait(args)) => wait::run(args, context).await,
        Some(Command::Migrate(args)) => migrate::run(args, context).await,
        Some(Command::Doctor(args)) => doctor::run(args, context).await,
        Some(Command::Reap(args)) => reap::run(args, context).await,
        Some(Command::Recover(args)) => recover::run(args, context).await,
        Some(Command::Completions(args)) => completions::run(&args, context),
        Some(Command::Man(args)) => man::run(&args, context),
    }
}
