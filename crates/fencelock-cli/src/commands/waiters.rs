use fencelock::spi::LockKey;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::{WaiterView, Waiters};

/// List who waits for a lock, first in line first
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock waiters nightly-report
  fencelock waiters nightly-report --json | jq length")]
pub(crate) struct Args {
    /// The lock
    key: LockKey,
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let waiters = context.admin().await?.waiters(args.key).await?;
    let waiters = waiters.iter().map(WaiterView::from).collect();
    context.output.answer(&Waiters(waiters))?;
    Ok(Exit::Done)
}
