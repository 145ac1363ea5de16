//! What attempts and guards do with their session.

use std::sync::Arc;

use lock_spi::{AttemptId, Grant, GrantRef, Instant};

use super::{Cause, Phase, Session};
use crate::error::Error;
use crate::holding::{Holding, Renewal};
use crate::line::Occupied;
use crate::lost::LostReason;

/// How the opening went.
pub(crate) enum Opened {
    Failed(Error),
    /// It is not open any more.
    Over,
    Yes,
}

/// For attempts.
impl Session {
    /// Takes an attempt under the session, unless the session takes nothing new.
    pub(crate) fn register(&self, attempt: AttemptId, most_users: usize) -> bool {
        self.expire();
        let mut state = self.state();
        let takes = self.phase() <= Phase::Open && !state.retiring;
        let takes = takes && state.book.users() < most_users;
        if takes {
            state.book.add_attempt(attempt);
        }
        takes
    }

    /// The attempt is to take over a grant. Renewals account for it from now on: the store would end
    /// what nobody knows of.
    pub(crate) fn expect(&self, attempt: AttemptId, grant: GrantRef) {
        self.state().book.expect(attempt, grant);
    }

    /// The attempt is given up.
    pub(crate) fn unregister(&self, attempt: AttemptId) {
        let mut state = self.state();
        state.book.remove_attempt(attempt);
        self.kick_if_useless(&state);
    }

    /// Waits until it is known whether the session is open.
    pub(crate) async fn opened(&self) -> Opened {
        self.reached(Phase::Open).await;
        if self.expire() == Phase::Open {
            return Opened::Yes;
        }
        match &self.state().failure {
            Some(error) => Opened::Failed(error.share()),
            None => Opened::Over,
        }
    }

    /// Turns an attempt into a holding; `None` when the grant came too late to be believed in.
    pub(crate) fn hold(
        self: &Arc<Self>,
        attempt: AttemptId,
        grant: Grant,
        sent: Instant,
        renewal: Renewal,
        occupied: Occupied,
    ) -> Option<Arc<Holding>> {
        self.expire();
        let Grant {
            key,
            token,
            remaining,
            ..
        } = grant;
        // A renewal under way may cover the grant or not; where grants end with their session and
        // not before it, that makes no difference.
        let remaining = remaining.filter(|_| self.backend.grants_end_alone);
        let cap = match renewal {
            Renewal::Kept => remaining.map(|left| sent + left - self.timing.margin()),
            Renewal::Never => Some(sent + self.timing.renew_deadline),
        };
        let grant = GrantRef { key, token };
        let holding = Arc::new(Holding::new(grant, attempt, renewal, Arc::clone(self)));
        let counted = self.backend.telemetry.count_held();
        let now = self.now();
        let mut state = self.state();
        if self.phase() != Phase::Open || cap.is_some_and(|cap| cap <= now) {
            return None;
        }
        state
            .book
            .hold(Arc::clone(&holding), cap, occupied, counted);
        if let Some(cap) = cap {
            // A grant whose answer took long is not to end for want of a renewal that knows of it.
            let confirmed_by = state.next_renewal + self.timing.renew_every;
            state.renew_now |= renewal == Renewal::Kept && cap < confirmed_by;
            // Its end may come before anything that the keeper would wake for.
            self.kick.notify_one();
        }
        Some(holding)
    }
}

/// For guards.
impl Session {
    /// Until when this holding is to be believed in.
    pub(crate) fn believed_until(&self, holding: &Holding) -> Result<Instant, LostReason> {
        self.expire();
        let state = self.state();
        let Some(cap) = state.book.cap_of(holding.attempt) else {
            // What is not held was told why, under this lock.
            return Err(holding.lost_reason().unwrap_or(LostReason::Released));
        };
        let believed = state.believed(&self.timing);
        Ok(cap.map_or(believed, |cap| cap.min(believed)))
    }

    /// When the lack of a renewal is alarming.
    pub(crate) fn overdue_at(&self) -> Instant {
        self.state().confirmed + self.timing.overdue_after()
    }

    /// Asks for a renewal before its time.
    pub(crate) fn renew_now(&self) {
        self.state().renew_now = true;
        self.kick.notify_one();
    }

    /// Ends a holding, and with it the session, so that another client can go on with both; `false`
    /// when it had ended before.
    pub(crate) fn hand_away(&self, holding: &Holding) -> bool {
        self.expire();
        let mut state = self.state();
        let held = state.book.drop_held(holding.attempt);
        if held.is_some() {
            holding.end(&LostReason::HandedOver);
            // As far as this client is concerned the store has nothing of it any more.
            state.freed = true;
            state.cause.get_or_insert(Cause::HandedOver);
            self.advance(Phase::Ending);
            self.kick.notify_one();
        }
        held.is_some()
    }

    /// Ends a holding at its holder's wish; `false` when it had ended before.
    pub(crate) fn give_back(&self, holding: &Holding) -> bool {
        let mut state = self.state();
        let held = state.book.return_held(holding.attempt);
        if held.is_some() {
            holding.end(&LostReason::Released);
            self.kick_if_useless(&state);
        }
        held.is_some()
    }
}
