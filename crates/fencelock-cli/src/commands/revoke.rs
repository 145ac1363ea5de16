use fencelock::spi::{Effect, FencingToken, LockKey, LockOutcome, Owner, Reason, RevokeTarget};
use fencelock::{Admin, Revoke};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operator::{caller, does_not_stand};
use crate::view::{OutcomeView, one_line};

/// End a grant from outside; the next holder gets a higher token
///
/// Its holder learns that the lock is lost, who did it and why. What it writes until then, only a
/// resource that checks tokens refuses. The store records it for ever: see fencelock revocations.
///
/// Name the grant by its token where you can: with --whoever, one that began after you looked is
/// ended as well. On a free lock --whoever raises the floor.
#[derive(clap::Args, Debug)]
#[command(
    group = clap::ArgGroup::new("target").required(true),
    after_help = "Examples:
  fencelock revoke nightly-report --token 4711 --reason \"stuck since 03:00\"
  fencelock revoke nightly-report --whoever --reason \"host is gone\" --yes

It ends with the status 83 when the grant named by --token does not stand; nothing is \
                  changed then."
)]
pub(crate) struct Args {
    /// The lock
    key: LockKey,
    /// End this grant and no other
    #[arg(long, group = "target")]
    token: Option<FencingToken>,
    /// End whichever grant stands
    #[arg(long, group = "target")]
    whoever: bool,
    /// Why, for the record and for the holder
    #[arg(long)]
    reason: Reason,
    /// Who, for the record; unless given, the user at this host
    #[arg(long)]
    by: Option<Owner>,
    /// Do not ask; without a terminal, --whoever demands it
    #[arg(long, short)]
    yes: bool,
}

/// How often a revoke is sent whose answer got lost.
const TRIES: usize = 4;

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let admin = context.admin().await?;
    let by = args.by.clone().map_or_else(caller, Ok)?;
    // Who names the grant by its token may also do so in a script.
    if !args.yes && (args.whoever || context.output.can_ask()) {
        context.output.confirm(&question(&args, &admin).await?)?;
    }
    let target = match args.token {
        Some(token) => RevokeTarget::Grant(token),
        None => RevokeTarget::Whoever,
    };
    let revoke = admin.revoke(args.key.clone(), target);
    let revoke = revoke.by(by.as_str()).reason(args.reason.as_str());
    let outcome = send(&revoke).await?;
    match (outcome.revoked, args.token) {
        (false, Some(token)) => Err(does_not_stand(&args.key, token)),
        _ => {
            context.output.answer(&OutcomeView::from(&outcome))?;
            Ok(Exit::Done)
        }
    }
}

async fn question(args: &Args, admin: &Admin) -> Result<String, Failure> {
    let key = &args.key;
    if let Some(token) = args.token {
        return Ok(format!("End the grant {token} of {key}?"));
    }
    Ok(match admin.read(key.clone()).await?.holder {
        Some(holder) => {
            let owner = one_line(holder.owner.as_str());
            format!("End the grant of {key}, now {} of {owner}?", holder.token)
        }
        None => format!("Nobody holds {key} now. Raise its floor?"),
    })
}

/// The same wish again answers what became of it.
async fn send(revoke: &Revoke) -> Result<LockOutcome, Failure> {
    let mut tries = 1;
    loop {
        match revoke.clone().send().await {
            Err(error) if error.effect() == Effect::Unknown && tries < TRIES => tries += 1,
            answer => return answer.map_err(|error| Failure::of_change(&error)),
        }
    }
}
