use std::io::{self, Write};
use std::time::Duration;

use fencelock::Admin;
use fencelock::spi::Runtime;
use serde::Serialize;

use crate::args::duration;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operator::runtime;
use crate::output::Answer;

/// So many are asked for at once.
const BATCH: u32 = 10_000;

/// Clear away what is dead: sessions that have ended, their places and grants
///
/// No lock waits for it, and nothing that lives is touched. But the tables of a Postgres store grow
/// without it: run it every few minutes, as a role that may (fencelock migrate --print-grants ROLE
/// --reaper). Stores that expire by themselves, as etcd, have nothing to clear.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock reap
  fencelock reap --every 5m

With --every it goes on until it is ended; what fails then is told and tried again.")]
pub(crate) struct Args {
    /// Go on, with a pause of this length in between
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    every: Option<Duration>,
}

#[derive(Serialize)]
struct Cleared {
    cleared: u64,
}

impl Answer for Cleared {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.cleared {
            0 => writeln!(out, "nothing was dead"),
            1 => writeln!(out, "cleared 1 dead entry"),
            many => writeln!(out, "cleared {many} dead entries"),
        }
    }
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let admin = context.admin().await?;
    let Some(every) = args.every else {
        let cleared = all(&admin, context).await?;
        context.output.answer(&cleared)?;
        return Ok(Exit::Done);
    };
    let runtime: &dyn Runtime = &runtime();
    loop {
        match all(&admin, context).await {
            Ok(cleared) => context.output.line(&cleared)?,
            Err(error) if error.is_retryable() => context.output.failure(&error.into()),
            Err(error) => return Err(error.into()),
        }
        runtime.sleep(every).await;
    }
}

async fn all(admin: &Admin, context: &Context<'_>) -> fencelock::Result<Cleared> {
    let mut cleared = 0;
    loop {
        let now = admin.reap_expired(BATCH).await?;
        cleared += u64::from(now);
        if now < BATCH {
            break;
        }
        context.output.progress(&format!("{cleared} cleared"));
    }
    if cleared >= u64::from(BATCH) {
        context.output.progress_done();
    }
    Ok(Cleared { cleared })
}
