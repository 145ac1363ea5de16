use std::io::{self, Write};

use fencelock::spi::{FencingToken, LockKey};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operator::does_not_stand;
use crate::output::Answer;

/// Release a grant in its holder's stead
///
/// Only the grant that the token names is ended, and nothing is recorded. It is for a holder that is
/// known to be gone: one that lives learns of it with its next renewal, and not why. Where in doubt,
/// fencelock revoke is the better way.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fencelock release nightly-report --token \"$FENCELOCK_TOKEN\"

It ends with status 83 when that grant does not stand; nothing is changed then.")]
pub(crate) struct Args {
    /// The lock
    key: LockKey,
    /// The grant
    #[arg(long)]
    token: FencingToken,
}

#[derive(Serialize)]
struct Released {
    key: String,
    token: String,
    released: bool,
}

impl Answer for Released {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "released the grant {} of {}", self.token, self.key)
    }
}

pub(crate) async fn run(args: Args, context: &Context<'_>) -> Result<Exit, Failure> {
    let Args { key, token } = args;
    let released = context.admin().await?.release(key.clone(), token).await;
    match released.map_err(|error| Failure::of_change(&error))? {
        false => Err(does_not_stand(&key, token)),
        true => {
            context.output.answer(&Released {
                key: key.to_string(),
                token: token.to_string(),
                released: true,
            })?;
            Ok(Exit::Done)
        }
    }
}
