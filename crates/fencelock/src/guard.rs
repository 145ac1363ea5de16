use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{FencingToken, GrantRef, LockKey};

use crate::error::{Error, Result};
use crate::grant::{Grant, NotHandedOver};
use crate::held::Held;
use crate::holding::Holding;
use crate::lost::Lost;
use crate::releaser;

/// A lock that is held: renewed in the background, given back by [`release`](Self::release).
///
/// Dropped, it is given back soon, by a task of the client: the drop itself only hands it over, and
/// neither blocks nor panics, on any thread, also after the runtime has ended. Then, and when the
/// client cannot reach the store, the ttl ends it. A forgotten guard (`std::mem::forget`) is held
/// until its client is shut down or dropped.
///
/// No check at the holder can rule out that the process is suspended between the check and the
/// write. So hand the [token](Self::check) to the resource with every write, and have it refuse
/// tokens lower than the highest it has seen; [`fence`](crate::fence) does.
#[derive(Debug)]
#[must_use = "the lock is given back when the guard is dropped"]
pub struct Guard {
    held: Held,
}

/// What a release found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Release {
    /// The guard had lost the lock before. Where that was not
    /// [definite](crate::LostReason::is_definite) the store may keep it until its session's end.
    AlreadyGone,
    /// The lock was held until this release.
    Released,
}

impl Guard {
    pub(crate) fn new(holding: Arc<Holding>) -> Self {
        Self {
            held: Held { holding },
        }
    }

    /// What is locked.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.held.key()
    }

    /// The token of this grant, whether or not it is still held; see [`check`](Self::check).
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token()
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
        self.held.check()
    }

    /// Whether the lock is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.is_held()
    }

    /// How long it is held without a further renewal; zero when it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.held.remaining()
    }

    /// A view for closures and other tasks; it does not keep the lock.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held.clone()
    }

    /// Resolves when the lock is lost; at once when it is so already.
    ///
    /// # Errors
    ///
    /// None: the answer is how it was lost.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn lost(&self) -> Lost {
        self.held.lost().await
    }

    /// Resolves with what is left when a renewal is overdue: half-way between the moment when one
    /// was due and the deadline. Time to come to an orderly end.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the lock is lost; for a guard without renewal that is all there is to wait for.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn jeopardy(&self) -> Result<Duration, Lost> {
        self.held.holding.jeopardy().await
    }

    /// Answers with what is left once that is `at_least` as much, renewing only if it is less.
    ///
    /// # Errors
    ///
    /// - `Lost` when the lock is lost.
    /// - `InvalidRequest` when a renewal does not give as much, or the guard is without renewal.
    /// - `Unavailable`, `NotLeader` and the like when the renewal failed, or took so long that less
    ///   is left; the lock is still held.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn ensure(&self, at_least: Duration) -> Result<Duration> {
        self.held.holding.ensure(at_least).await
    }

    /// Runs `work` while the lock is held; on loss the work is dropped where it stands.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the lock was lost before the work was done, also when the work came to its end
    /// without noticing.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: the work is dropped, the lock is kept. Queue
    /// place: none.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let work = pin!(work);
        tokio::select! {
            biased;
            lost = self.lost() => Err(lost),
            output = work => self.check().map(|_| output),
        }
    }

    /// Makes of a guard that was acquired as
    /// [`transferable`](crate::Acquire::transferable) what another process can
    /// [`adopt`](crate::Client::adopt): the lock stays held, with the same token, and this client
    /// does nothing for it any more. Within what is [left](Self::remaining) of it the other has to
    /// take it over.
    ///
    /// # Errors
    ///
    /// [`NotHandedOver`] with the guard: `InvalidRequest` when it was not acquired as transferable,
    /// `Lost` when the lock is lost.
    pub fn into_grant(self) -> Result<Grant, NotHandedOver> {
        let holding = &self.held.holding;
        let session = &holding.session;
        let refused = match holding.check() {
            Err(lost) => Some(lost.into()),
            Ok(_) if !session.transferable => Some(Error::invalid(
                "the lock was not acquired as transferable, so its session keeps other locks too",
            )),
            Ok(_) => None,
        };
        if let Some(error) = refused {
            return Err(NotHandedOver { guard: self, error });
        }
        let GrantRef { key, token } = holding.grant.clone();
        let grant = Grant {
            key,
            token,
            session: session.id,
            ttl: session.timing.ttl,
        };
        match session.hand_away(holding) {
            true => Ok(grant),
            // It was lost in this moment.
            false => match holding.check() {
                Err(lost) => Err(NotHandedOver {
                    guard: self,
                    error: lost.into(),
                }),
                Ok(_) => unreachable!("what is held can be handed over"),
            },
        }
    }

    /// Gives the lock back and tells whether it was held until now.
    ///
    /// However it ends, the guard is over: nothing renews it any more.
    ///
    /// # Errors
    ///
    /// Those of the store: at once where trying again does not help, otherwise when it had no answer
    /// for about 2 s. Either way the client goes on trying in the background for as long as the
    /// session lives; there is nothing that the caller must do.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: the release goes on in the background.
    /// Queue place: none.
    pub async fn release(self) -> Result<Release> {
        let holding = &self.held.holding;
        if !self.is_held() || !holding.give_back() {
            return Ok(Release::AlreadyGone);
        }
        releaser::give_back(holding).await
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let holding = &self.held.holding;
        if holding.give_back() {
            Arc::clone(holding).hand_over();
        }
    }
}
