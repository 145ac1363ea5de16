use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{AttemptId, Effect, GrantRef, Instant};
use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::lost::{Lost, LostReason};
use crate::releaser::{Job, Return};
use crate::session::Session;

/// Whether a guard is renewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Renewal {
    /// For as long as it is held.
    Kept,
    /// Not at all: the client gives it back when its time is over.
    Never,
}

/// One grant as its holder sees it: what a guard and all its [`Held`](crate::Held) share.
pub(crate) struct Holding {
    pub(crate) grant: GrantRef,
    pub(crate) attempt: AttemptId,
    pub(crate) renewal: Renewal,
    pub(crate) session: Arc<Session>,
    /// Set once and for good, by the session, under its lock.
    lost: watch::Sender<Option<LostReason>>,
}

impl Holding {
    pub(crate) fn new(
        grant: GrantRef,
        attempt: AttemptId,
        renewal: Renewal,
        session: Arc<Session>,
    ) -> Self {
        Self {
            grant,
            attempt,
            renewal,
            session,
            lost: watch::Sender::new(None),
        }
    }

    /// Says for good how it ended.
    pub(crate) fn end(&self, reason: &LostReason) {
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            if first {
                *lost = Some(reason.clone());
            }
            first
        });
    }

    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        self.lost.borrow().clone()
    }

    fn loss(&self, reason: LostReason) -> Lost {
        let GrantRef { key, token } = self.grant.clone();
        Lost { key, token, reason }
    }

    /// Until when it is held, as far as is known now.
    pub(crate) fn check(&self) -> Result<Instant, Lost> {
        self.session
            .believed_until(self)
            .map_err(|reason| self.loss(reason))
    }

    pub(crate) fn remaining(&self) -> Result<Duration, Lost> {
        let until = self.check()?;
        Ok(until.saturating_since(self.session.backend.runtime.now()))
    }

    pub(crate) async fn lost(&self) -> Lost {
        let mut lost = self.lost.subscribe();
        loop {
            // Asking the clock here makes the answer independent of the keeper's task.
            let until = match self.check() {
                Ok(until) => until,
                Err(lost) => return lost,
            };
            let passed = self.session.backend.runtime.sleep_until(until);
            tokio::select! {
                biased;
                // The sender lives in `self`.
                _ = lost.changed() => {}
                () = passed => {}
            }
        }
    }

    pub(crate) async fn jeopardy(&self) -> Result<Duration, Lost> {
        loop {
            let remaining = self.remaining()?;
            let overdue = match self.renewal {
                Renewal::Kept => self.session.overdue_at(),
                Renewal::Never => return Err(self.lost().await),
            };
            let runtime = &self.session.backend.runtime;
            if runtime.now() >= overdue {
                return Ok(remaining);
            }
            tokio::select! {
                biased;
                lost = self.lost() => return Err(lost),
                () = runtime.sleep_until(overdue) => {}
            }
        }
    }

    pub(crate) async fn ensure(&self, at_least: Duration) -> Result<Duration> {
        let most = self.session.timing.renew_deadline;
        let mut rounds = self.session.rounds.subscribe();
        // The first renewal to end may have been under way before.
        for _ in 0..2 {
            let remaining = self.remaining()?;
            if remaining >= at_least {
                return Ok(remaining);
            }
            if at_least > most {
                return Err(Error::invalid(format!(
                    "{at_least:?} is more than a renewal gives: {most:?}"
                )));
            }
            if self.renewal == Renewal::Never {
                return Err(Error::invalid("the guard is without renewal"));
            }
            self.session.renew_now();
            tokio::select! {
                biased;
                lost = self.lost() => return Err(lost.into()),
                _ = rounds.changed() => {}
            }
            if let Some(error) = &*rounds.borrow_and_update() {
                return Err(error.share());
            }
        }
        let remaining = self.remaining()?;
        if remaining >= at_least {
            return Ok(remaining);
        }
        Err(Error::unavailable(
            Effect::Unknown,
            format!("the store took too long to renew: {remaining:?} is left"),
        ))
    }

    /// Ends it at its holder's wish; `false` when it is over already. The store has it still.
    pub(crate) fn give_back(&self) -> bool {
        self.session.give_back(self)
    }

    /// Has it released in the background. Never waits, and works on any thread.
    pub(crate) fn hand_over(self: Arc<Self>) {
        let session = Arc::clone(&self.session);
        session.hand_over(Job::Release(Return::new(self)));
    }
}

impl fmt::Debug for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holding")
            .field("key", &self.grant.key)
            .field("token", &self.grant.token)
            .field("lost", &*self.lost.borrow())
            .finish_non_exhaustive()
    }
}
