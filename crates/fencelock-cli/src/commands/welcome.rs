//! What `fencelock` alone says.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

const WELCOME: &str = "\
fencelock: distributed locks that can be trusted

Hold a lock on your own Postgres:

  export FENCELOCK_STORE=postgres://postgres@localhost/postgres
  fencelock migrate                            # once: makes the schema \"dlock\"
  fencelock run demo -- sh -c 'echo \"I hold demo with token $FENCELOCK_TOKEN\"'

`fencelock --help` has the rest.
";

pub(crate) fn run(context: &Context<'_>) -> Result<Exit, Failure> {
    context.output.text(WELCOME)?;
    Ok(Exit::Done)
}
