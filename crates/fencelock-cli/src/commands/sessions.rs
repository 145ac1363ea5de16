use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::{SessionView, Sessions};

/// List the open sessions
///
/// A session is one client's lease in the store: what it holds ends with it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock sessions
  fencelock sessions --json | jq -r '.[].owner' | sort | uniq -c")]
pub(crate) struct Args {}

pub(crate) async fn run(_: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let admin = context.admin().await?;
    let sessions = context.all(admin.sessions()).await?;
    let sessions = sessions.iter().map(SessionView::from).collect();
    context.output.answer(&Sessions(sessions))?;
    Ok(Exit::Done)
}
