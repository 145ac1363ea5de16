use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use fencelock::Admin;
use fencelock::spi::{KeyPrefix, LockInfo, Runtime};
use futures_util::TryStreamExt;
use serde::Serialize;

use crate::args::duration;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operator::runtime;
use crate::output::Answer;
use crate::view::{LockView, Locks, moment, one_line, or_dash};

/// List the locks that are held
///
/// With --watch, go on and tell each grant that appears or ends, until interrupted. The store is
/// looked at again and again, so that a grant shorter than the pause may go unseen.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock list
  fencelock list orders/ --waiters --json | jq -r '.[] | select(.waiters > 10) | .key'
  fencelock list --watch --every 5s")]
pub(crate) struct Args {
    /// Only keys that begin so, byte for byte
    #[arg(default_value = "")]
    prefix: KeyPrefix,
    /// Count who waits for each; a further call for each lock
    #[arg(long, conflicts_with = "watch")]
    waiters: bool,
    /// Go on, and tell what changes
    #[arg(long)]
    watch: bool,
    /// How long to pause between two looks
    #[arg(long, requires = "watch", value_name = "DURATION", default_value = "1s",
          value_parser = duration)]
    every: Duration,
}

/// What `--watch` tells, each on a line.
#[derive(Serialize)]
struct Change<'a> {
    at: String,
    event: &'static str,
    #[serde(flatten)]
    lock: &'a LockView,
}

impl Answer for Change<'_> {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { at, event, lock } = self;
        let holder = lock.holder.as_ref();
        let owner = or_dash(holder.map(|holder| one_line(&holder.owner)));
        let token = or_dash(holder.map(|holder| &holder.token));
        writeln!(out, "{at}  {event:<7}  {}  {token}  {owner}", lock.key)
    }
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let admin = context.admin().await?;
    if args.watch {
        return watch(&admin, &args, context).await;
    }
    let mut locks = context.all(admin.list(&args.prefix)).await?;
    for lock in locks.iter_mut().filter(|_| args.waiters) {
        // Stores count them only where one key is looked at.
        lock.waiter_count = admin.read(&lock.key).await?.waiter_count;
    }
    let locks = locks.iter().map(LockView::from).collect();
    context.output.answer(&Locks(locks))?;
    Ok(Exit::Done)
}

/// By key and token: a key that changed hands is another grant.
type Seen = BTreeMap<(String, String), LockView>;

async fn watch(admin: &Admin, args: &Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let runtime: &dyn Runtime = &runtime();
    let mut seen = Seen::new();
    let mut is_out_of_reach = false;
    loop {
        match look(admin, &args.prefix).await {
            Ok(now) => {
                if std::mem::take(&mut is_out_of_reach) {
                    context.output.note("the store answers again");
                }
                let begun = now.iter().filter(|(grant, _)| !seen.contains_key(*grant));
                let ended = seen.iter().filter(|(grant, _)| !now.contains_key(*grant));
                let ended = ended.map(|(_, lock)| ("ended", lock));
                for (event, lock) in ended.chain(begun.map(|(_, lock)| ("granted", lock))) {
                    let at = moment(runtime.wall_clock());
                    context.output.line(&Change { at, event, lock })?;
                }
                seen = now;
            }
            Err(error) if error.is_retryable() => {
                if !std::mem::replace(&mut is_out_of_reach, true) {
                    context
                        .output
                        .warn(&format!("the store does not answer: {error}"));
                }
            }
            Err(error) => return Err(error.into()),
        }
        runtime.sleep(args.every).await;
    }
}

async fn look(admin: &Admin, prefix: &KeyPrefix) -> fencelock::Result<Seen> {
    let list: Vec<LockInfo> = admin.list(prefix).try_collect().await?;
    let grants = list.iter().filter_map(|info| {
        let token = info.holder.as_ref()?.token;
        Some(((info.key.to_string(), token.to_string()), info.into()))
    });
    Ok(grants.collect())
}
