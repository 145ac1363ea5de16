use std::io::{self, Write};

use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Answer;
use crate::view::or_dash;

/// Make what a store needs, or bring it up to this version
///
/// Postgres needs the schema dlock, made once by a role that may make schemas; etcd needs nothing.
/// Repeated, and by several at once, it is fine.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock migrate --store postgres://admin@db/app
  fencelock migrate --print | psql app
  fencelock migrate --print-grants billing | psql app  # lets the role billing use the locks")]
pub(crate) struct Args {
    /// Print the statements instead, for whatever runs your migrations; nothing is connected to
    #[arg(long)]
    print: bool,
    /// Print the statements that let this role of the database use the locks
    #[arg(long, value_name = "ROLE")]
    print_grants: Option<String>,
    /// It is to clear away what is dead (fencelock reap), and nothing else
    #[arg(long, requires = "print_grants")]
    reaper: bool,
}

#[derive(Serialize)]
struct Migrated {
    /// `null` where nothing was.
    before: Option<u32>,
    now: Option<u32>,
}

impl Answer for Migrated {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        let now = or_dash(self.now);
        match self.before {
            None => writeln!(out, "made what the locks need, of format {now}"),
            before if before == self.now => {
                writeln!(out, "the locks are of format {now}, as they should be")
            }
            Some(before) => writeln!(
                out,
                "the locks were of format {before}, and are of {now} now"
            ),
        }
    }
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let installation = context.installation()?;
    if args.print || args.print_grants.is_some() {
        let script = args.print.then(|| installation.script());
        let rights = args.print_grants.map(|role| match args.reaper {
            true => installation.reaper_rights(&role),
            false => installation.rights(&role),
        });
        let parts: Vec<_> = script.into_iter().chain(rights).flatten().collect();
        if parts.is_empty() {
            context.output.note("this store needs nothing made");
        }
        context.output.text(&parts.concat())?;
        return Ok(Exit::Done);
    }
    let before = installation.migration().await?.found;
    let now = installation.migrate().await;
    let now = now.map_err(|error| Failure::of_change(&error))?.found;
    context.output.answer(&Migrated { before, now })?;
    Ok(Exit::Done)
}
