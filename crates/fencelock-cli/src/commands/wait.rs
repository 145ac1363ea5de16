use std::time::Duration;

use fencelock::spi::{LockInfo, LockKey, Runtime};

use crate::args::duration;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operator::runtime;
use crate::view::one_line;

/// The first pause between two looks; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Wait until nobody holds a lock, without taking it
///
/// It takes no place in the queue, and by the time it ends somebody else may hold the lock: to do
/// something under the lock, use fencelock run.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock wait nightly-report && echo \"the report is done\"
  fencelock wait nightly-report --at-most 10m")]
pub(crate) struct Args {
    /// The lock
    key: LockKey,
    /// Give up after this long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    at_most: Option<Duration>,
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let admin = context.admin().await?;
    let runtime: &dyn Runtime = &runtime();
    let deadline = args.at_most.map(|limit| runtime.now() + limit);
    let mut pause = FIRST_PAUSE;
    let mut told = None;
    loop {
        match admin.read(args.key.clone()).await {
            Ok(LockInfo { holder: None, .. }) => return Ok(Exit::Done),
            Ok(LockInfo {
                holder: Some(holder),
                ..
            }) => {
                if told.replace(holder.token) != Some(holder.token) {
                    let (owner, token) = (one_line(holder.owner.as_str()), holder.token);
                    let note = format!("{} is held by {owner}, token {token}", args.key);
                    context.output.note(&note);
                }
            }
            // Nothing was learned. That is no answer.
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
        let left = deadline.map(|deadline| deadline.saturating_since(runtime.now()));
        if left.is_some_and(|left| left.is_zero()) {
            let what = format!("{} was not seen free in time", args.key);
            return Err(Failure::new(Exit::TimedOut, what));
        }
        runtime
            .sleep(left.map_or(pause, |left| pause.min(left)))
            .await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
