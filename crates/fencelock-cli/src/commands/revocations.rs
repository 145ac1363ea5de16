use fencelock::spi::LockKey;
use futures_util::StreamExt;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::{RevocationView, Revocations};

/// List who revoked grants of a lock, when and why, newest first
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock revocations nightly-report
  fencelock revocations nightly-report --limit 1 --json")]
pub(crate) struct Args {
    /// The lock
    key: LockKey,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let admin = context.admin().await?;
    let limit = args.limit.unwrap_or(usize::MAX);
    let revocations = admin.revocations(args.key)?.take(limit);
    let revocations = context.all(revocations).await?;
    let revocations = revocations.iter().map(RevocationView::from).collect();
    context.output.answer(&Revocations(revocations))?;
    Ok(Exit::Done)
}
