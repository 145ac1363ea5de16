//! What the commands of operators have in common.

use fencelock::spi::{FencingToken, LockKey, Owner, Runtime, TokioRuntime};
use fencelock::{Admin, Installation};
use futures_util::{Stream, StreamExt};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::store;

/// How often the length of a long listing is told.
const STEP: usize = 1000;

impl Context<'_> {
    /// What operators do in a store that is in order.
    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        Ok(self.store()?.connect().await?.admin())
    }

    /// A store that need not be in order.
    pub(crate) fn installation(&self) -> Result<Installation, Failure> {
        Ok(Installation::at(self.store()?.url())?)
    }

    /// The whole of a listing; how far it is is told when it is long.
    pub(crate) async fn all<T>(
        &self,
        listing: impl Stream<Item = fencelock::Result<T>>,
    ) -> Result<Vec<T>, Failure> {
        let mut listing = std::pin::pin!(listing);
        let mut all = Vec::new();
        while let Some(entry) = listing.next().await {
            all.push(entry?);
            if all.len().is_multiple_of(STEP) {
                self.output.progress(&format!("{} read", all.len()));
            }
        }
        if all.len() >= STEP {
            self.output.progress_done();
        }
        Ok(all)
    }
}

/// Time as the client has it.
pub(crate) fn runtime() -> impl Runtime {
    TokioRuntime::current()
}

/// Who is at work here, for the record, and who they were before sudo.
pub(crate) fn caller() -> Result<Owner, Failure> {
    let caller = store::caller();
    Ok(match std::env::var("SUDO_USER") {
        Ok(before) if !before.is_empty() => Owner::new(format!("{caller}, sudo by {before}"))?,
        _ => Owner::new(caller)?,
    })
}

/// The grant that was named is not there.
pub(crate) fn does_not_stand(key: &LockKey, token: FencingToken) -> Failure {
    let what = format!("the grant {token} of {key} does not stand; nothing was changed");
    Failure::new(Exit::NotHeld, what).hint(format!("`fencelock inspect {key}` tells who holds it"))
}
