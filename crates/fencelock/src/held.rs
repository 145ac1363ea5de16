use std::sync::Arc;
use std::time::Duration;

use lock_spi::{FencingToken, LockKey};

use crate::holding::Holding;
use crate::lost::Lost;

/// A view of a lock that is held, for closures and other tasks; it does not keep the lock.
///
/// It outlives its [`Guard`](crate::Guard): afterwards it is lost as
/// [`Released`](crate::LostReason::Released).
#[derive(Clone, Debug)]
pub struct Held {
    pub(crate) holding: Arc<Holding>,
}

impl Held {
    /// What is locked.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.holding.grant.key
    }

    /// The token of this grant, whether or not it is still held; see [`check`](Self::check).
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.holding.grant.token
    }

    /// The token while the lock is held. Ask it before every write, and hand it to the resource.
    ///
    /// The deadline is judged by the clock now, so a process that was suspended learns of the loss
    /// here, whatever else has not run yet.
    ///
    /// # Errors
    ///
    /// [`Lost`] once the lock is no longer held.
    pub fn check(&self) -> Result<FencingToken, Lost> {
        self.holding.check().map(|_| self.token())
    }

    /// Whether the lock is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.holding.check().is_ok()
    }

    /// How long it is held without a further renewal; zero when it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.holding.remaining().unwrap_or_default()
    }

    /// Resolves when the lock is no longer held; at once when it is so already.
    ///
    /// # Errors
    ///
    /// None: the answer is how it was lost.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn lost(&self) -> Lost {
        self.holding.lost().await
    }
}
