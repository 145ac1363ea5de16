//! What `fencelock` alone says.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

const WELCOME: &str = "\
fencelock: distributed locks that can be trusted

Hold a lock on your own Postgres. Where is it, and as whom do you enter?

  export FENCELOCK_STORE=postgres://postgres@localhost/postgres

Once, make the schema \"dlock\" there; nothing else of the database is touched:

  fencelock migrate

Then run a command while the lock \"demo\" is held:

  fencelock run demo -- sh -c 'echo \"I hold demo with token $FENCELOCK_TOKEN\"'

Run it in two terminals with a sleep in it, and see one wait for the other. `fencelock doctor`
tells what is wrong when something is; `fencelock --help` has the rest.
";

pub(crate) fn run(context: &Context<'_>) -> Result<Exit, Failure> {
    context.output.text(WELCOME)?;
    Ok(Exit::Done)
}
