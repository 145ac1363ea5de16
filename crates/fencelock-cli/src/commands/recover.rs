use std::io::{self, Write};
use std::time::Duration;

use fencelock::Recover;
use fencelock::spi::{FencingToken, Recovery, RecoveryId, Runtime};
use serde::Serialize;

use crate::args::duration;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operator::runtime;
use crate::output::Answer;
use crate::view::brief;

/// How long to pause while the namespace is closed.
const PAUSE: Duration = Duration::from_secs(1);
/// How often in a row the store may not answer.
const PATIENCE: u32 = 30;

/// Begin anew after a restore or a fail-over that lost writes
///
/// It ends every session, grant and place of the namespace, keeps it closed for the hold-off, and
/// raises the term, so that every later token is above every earlier one, also those that the store
/// has forgotten. Old guards learn that their locks are lost; what they believe until then is over
/// before the namespace opens, if the hold-off is no shorter than the longest ttl in use.
///
/// In Postgres the term rises for all namespaces of the database, and only this one is closed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock recover --hold-off 15s          # no client has a longer ttl than 15 s
  fencelock recover --above 123145302310912 # the highest token that a resource has seen
  fencelock recover --id 0f…                # go on with one that was interrupted

It waits until the namespace is open. Interrupted, it is gone on with by its id; with etcd the \
                          hold-off then begins anew, and until somebody goes on the namespace \
                          stays closed.")]
pub(crate) struct Args {
    /// How long the namespace stays closed: the longest ttl that any client of it uses
    #[arg(long, value_name = "DURATION", default_value = "24h",
          value_parser = duration)]
    hold_off: Duration,
    /// The highest token that anyone knows of; look at your resources
    #[arg(long, value_name = "TOKEN")]
    above: Option<FencingToken>,
    /// Go on with the recovery of this id
    #[arg(long)]
    id: Option<RecoveryId>,
    /// Do not ask; demanded without a terminal
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Recovered {
    id: String,
    term: u64,
}

impl Answer for Recovered {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        let term = self.term;
        writeln!(out, "the namespace is open, in term {term}")?;
        writeln!(out, "every token from now on is above every one before")
    }
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let admin = context.admin().await?;
    if !args.yes {
        context.output.note(&announcement(&args));
        context.output.confirm("Recover?")?;
    }
    let mut recover = admin.recover(args.hold_off);
    if let Some(id) = args.id {
        recover = recover.again(id);
    }
    if let Some(above) = args.above {
        recover = recover.above(above);
    }
    let id = recover.id();
    let hold_off = humantime::format_duration(args.hold_off);
    context.output.note(&format!(
        "recovering, as {id}; the namespace stays closed for {hold_off}"
    ));
    let Recovery { term, .. } = until_open(&recover, context)
        .await
        .map_err(|failure| failure.hint(format!("go on with `fencelock recover --id {id}`")))?;
    let id = id.to_string();
    context.output.answer(&Recovered { id, term })?;
    Ok(Exit::Done)
}

/// Repeats the same recovery until it is over.
async fn until_open(recover: &Recover, context: &Context<'_>) -> Result<Recovery, Failure> {
    let runtime: &dyn Runtime = &runtime();
    let mut failures = 0;
    loop {
        let mut pause = PAUSE;
        match recover.clone().send().await {
            Ok(recovery) if recovery.closed_for.is_zero() => {
                context.output.progress_done();
                return Ok(recovery);
            }
            Ok(Recovery { term, closed_for }) => {
                failures = 0;
                let left = brief(closed_for);
                context
                    .output
                    .progress(&format!("term {term}, closed for {left} more"));
                pause = pause.min(closed_for);
            }
            // It is the same recovery, whatever became of the last try.
            Err(error) if error.is_retryable() && failures < PATIENCE => failures += 1,
            Err(error) => return Err(Failure::of_change(&error)),
        }
        runtime.sleep(pause).await;
    }
}

fn announcement(args: &Args) -> String {
    let hold_off = humantime::format_duration(args.hold_off);
    let mut text = format!(
        "this ends every session, grant and place in the namespace, keeps it closed for {hold_off}, \
         and raises the term"
    );
    if args.above.is_none() {
        text += "; what the store has forgotten is overtaken by the term alone, as no token of a \
                 resource was named by --above";
    }
    text
}
