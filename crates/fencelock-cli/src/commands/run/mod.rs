//! `fencelock run`: holds a lock while a command runs.
//!
//! [`hold`] has the life of the command, [`group`] its processes, [`supervisor`] the process that
//! ends them when this one cannot, [`limits`] how much time each step of an end has.

mod acquire;
mod group;
mod hold;
mod limits;
mod signals;
mod supervisor;
mod terminal;

use std::ffi::OsString;
use std::time::Duration;

use fencelock::spi::{LockKey, Runtime, TokioRuntime, Ttl};
use fencelock::{Client, Release};

use self::acquire::Acquired;
use self::limits::Limits;
use self::signals::Signals;
use crate::args::duration;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// How long the way out may take once somebody asked for an end, or the lock is lost: what is not
/// given back by then ends with its ttl.
const HURRIED: Duration = Duration::from_millis(700);

const EXAMPLES: &str = "\
Examples:
  fencelock run nightly-report -- ./report.sh
  fencelock run nightly-report --wait 0 --busy-status 0 -- ./report.sh
  fencelock run db-migration --wait 5m --ttl 60s --grace 10s -- ./migrate.sh

The command finds in its environment:
  FENCELOCK_TOKEN     its fencing token: hand it to the resource with every write
  FENCELOCK_KEY       what is locked
  FENCELOCK_DEADLINE  until when the lock is held if no renewal comes, in seconds since 1970

The command has a process group of its own. Signals that ask for an end, and those for
the user's own use, are passed on to all of it. When the lock is lost, or a renewal is
overdue so long that it may be lost, the whole group gets TERM, and KILL after --grace:
it is gone before the store gives the lock to anybody else. Only when somebody revokes
the lock, the next may hold it while the grace goes on.

When the command ends and leaves processes of its group behind, these are ended in the
same way; only then the lock is released. When fencelock itself is killed, or stopped
beyond the lock's deadline, a supervisor kills the group. Processes that leave the group,
as daemons do by setsid, are out of reach.

A command that is stopped on its terminal (^Z) stops fencelock too: the lock is not
renewed meanwhile, and the command is killed unless it goes on before the deadline.";

/// Hold a lock while a command runs
///
/// Waits for the lock, runs the command while holding it, and gives it back. Ends with the command's
/// exit status.
#[derive(clap::Args, Debug)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::help()))]
pub(crate) struct Args {
    /// What to lock
    key: String,
    /// How long to wait for the lock; 0 does not wait at all [default: for ever]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
    /// How long the store keeps the lock when no renewal comes [default: the URL's, else 15s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// From TERM to KILL, at most a quarter of the ttl [default: 5s, or what the ttl allows]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    grace: Option<Duration>,
    /// The exit status when someone else has the lock for longer than --wait [default: 75 or 79]
    #[arg(long, value_name = "STATUS")]
    busy_status: Option<u8>,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let key = LockKey::new(args.key.as_str())?;
    let store = context.store()?;
    let ttl = args.ttl.map(Ttl::new).transpose()?;
    let (limits, capped) = Limits::new(ttl.unwrap_or(store.ttl()), args.grace);
    if let (Some(asked), Some(most)) = (args.grace, capped) {
        context.output.warn(&format!(
            "--grace {} is more than a quarter of the ttl: {} it is; a ttl of {} would do",
            humantime::format_duration(asked),
            humantime::format_duration(most),
            humantime::format_duration(asked * 4),
        ));
    }
    if store.is_embedded() {
        let why = "the store memory: is of this process only: it excludes nobody else";
        context.output.warn(why);
    }

    let mut signals = Signals::catch()?;
    let client = tokio::select! {
        biased;
        signal = signals.asked_to_end() => return Ok(Exit::Command(group::ended_by(signal))),
        client = store.connect() => client?,
    };
    let mut wish = client
        .acquire(key)
        .wait_at_most(args.wait.unwrap_or(Duration::MAX));
    if let Some(ttl) = ttl {
        wish = wish.ttl(ttl);
    }
    let guard = match acquire::acquire(wish, args.wait, &mut signals).await {
        Ok(Acquired::Guard(guard)) => guard,
        Ok(Acquired::AskedToEnd(signal)) => {
            leave(client, HURRIED).await;
            return Ok(Exit::Command(group::ended_by(signal)));
        }
        Err(failure) => {
            leave(client, HURRIED).await;
            return match (failure.exit, args.busy_status) {
                (Exit::Busy | Exit::TimedOut, Some(status)) => {
                    context.output.note(&failure.what);
                    Ok(Exit::Command(status))
                }
                _ => Err(failure),
            };
        }
    };
    let ended = hold::hold(&args.command, &guard, limits, &mut signals, context.output).await;
    let lost = !guard.is_held();
    let runtime: &dyn Runtime = &TokioRuntime::current();
    match runtime.timeout(context.timeout, guard.release()).await {
        Ok(Ok(Release::Released | Release::AlreadyGone)) => {}
        Ok(Err(error)) => context.output.warn(&format!(
            "the lock could not be given back, so it ends with its ttl: {error}"
        )),
        Err(_) => context
            .output
            .warn("the store does not confirm that the lock is given back; it ends with its ttl"),
    }
    leave(client, if lost { HURRIED } else { context.timeout }).await;
    ended
}

/// Closes what the client has in the store. What it cannot close in time ends with its ttl.
async fn leave(client: Client, limit: Duration) {
    let runtime: &dyn Runtime = &TokioRuntime::current();
    drop(runtime.timeout(limit, client.shutdown()).await);
}
