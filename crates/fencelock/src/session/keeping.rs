//! What the keeper learns of its session, and what it is to do next.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use lock_spi::{
    Gone, GoneReason, Grant, GrantRef, Instant, KeepAliveRequest, KeptAlive, SessionLease,
};

use super::{Cause, Phase, Session};
use crate::error::Error;
use crate::holding::{Holding, Renewal};
use crate::lost::LostReason;

/// What the keeper is to do next.
pub(crate) enum Step {
    Close,
    Renew,
    Wait(Instant),
}

/// How a session is to be closed.
pub(crate) struct Closing {
    /// Not before this: what guards believed until their deadline keeps its margin.
    pub(crate) not_before: Instant,
    /// After this the store has let it expire, whichever renewal it had last.
    pub(crate) until: Instant,
}

impl Session {
    /// The store opened it.
    pub(crate) fn confirm_opened(&self, lease: &SessionLease, sent: Instant) {
        let mut state = self.state();
        state.confirmed = sent;
        state.sent = sent;
        state.deadline = sent + lease.remaining;
        state.next_renewal = sent + self.timing.renew_every;
        self.advance(Phase::Open);
    }

    /// It could not be opened; `freed` when the store is known to have nothing of it.
    pub(crate) fn fail_to_open(&self, error: Error, freed: bool) {
        let mut state = self.state();
        state.failure = Some(error);
        state.freed = freed;
        state.cause.get_or_insert(Cause::Store);
        self.advance(Phase::Ending);
    }

    /// Decides what comes next.
    pub(crate) fn step(&self) -> Step {
        if self.expire() >= Phase::Ending {
            return Step::Close;
        }
        let now = self.now();
        let mut state = self.state();
        let due = !state.renewing && (state.renew_now || now >= state.next_renewal);
        if state.book.is_deserted() && (due || state.retiring) {
            // A renewal that is due for nobody closes the session instead.
            state.cause = Some(Cause::Client);
            self.advance(Phase::Ending);
            return Step::Close;
        }
        if due {
            state.renewing = true;
            state.renew_now = false;
            state.sent = now;
            return Step::Renew;
        }
        let believed = state.believed(&self.timing);
        let next = state
            .book
            .first_cap()
            .map_or(believed, |cap| cap.min(believed));
        match state.renewing {
            true => Step::Wait(next),
            false => Step::Wait(next.min(state.next_renewal)),
        }
    }

    /// What there is to renew, and what is accounted for.
    pub(crate) fn to_renew(&self) -> KeepAliveRequest {
        let state = self.state();
        KeepAliveRequest {
            session: self.id,
            grants: state.book.kept().cloned().collect(),
            attempts: state.book.attempts().collect(),
        }
    }

    /// Held from the look at what there is to renew until the store has begun to renew it.
    pub(crate) fn setting_out(&self) -> MutexGuard<'_, ()> {
        self.turnstile
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called after an attempt was registered and before the store is asked for it. Then each
    /// renewal accounts for it: what begins between the client's look and the store's would be in
    /// neither's account, and be ended while its holder believes in it.
    pub(crate) fn pass(&self) {
        drop(self.setting_out());
    }

    /// A renewal was confirmed. Answers with the grants that the store was late to renew.
    pub(crate) fn confirm(
        &self,
        asked: &KeepAliveRequest,
        sent: Instant,
        kept: KeptAlive,
    ) -> Vec<Arc<Holding>> {
        // An answer that comes after the deadline revives nothing.
        if self.expire() != Phase::Open {
            return Vec::new();
        }
        let now = self.now();
        let mut state = self.state();
        let slack = state.deadline.saturating_since(now);
        state.renewing = false;
        state.failed = !kept.late.is_empty();
        state.pauses.reset();
        state.confirmed = sent;
        state.deadline = state.deadline.max(sent + kept.remaining);
        state.next_renewal = sent + self.timing.renew_every;

        let held = state.book.held().cloned();
        let held: BTreeMap<_, _> = held
            .map(|holding| (holding.grant.clone(), holding))
            .collect();
        let late: BTreeMap<_, _> = kept.late.into_iter().collect();
        let mut lagging = Vec::new();
        for grant in &asked.grants {
            let Some(holding) = held.get(grant) else {
                continue;
            };
            if holding.renewal == Renewal::Never {
                continue;
            }
            let left = late.get(grant).copied();
            let cap = left.map(|left| sent + left - self.timing.margin());
            state.book.set_cap(holding.attempt, cap);
            lagging.extend(cap.map(|_| Arc::clone(holding)));
        }
        let mut lost = Vec::new();
        for Gone { key, token, why } in kept.gone {
            let holding = held.get(&GrantRef { key, token });
            let holding = holding.and_then(|holding| state.book.drop_held(holding.attempt));
            lost.extend(holding.map(|holding| (holding, told(why))));
        }
        self.tell_lost(state, lost);
        self.backend.telemetry.renewed(slack);
        self.rounds.send_replace(None);
        lagging
    }

    /// A renewal has no answer.
    pub(crate) fn fail(&self, error: lock_spi::Error) {
        let now = self.now();
        let mut state = self.state();
        state.renewing = false;
        state.failed = true;
        // However long the pauses have become, the next try comes while there is time for it.
        let left = state.believed(&self.timing).saturating_since(now);
        let longest = (left / 2).max(self.timing.first_pause() / 8);
        let pause = state.pauses.next(&*self.backend.runtime);
        state.next_renewal = now + pause.min(longest);
        drop(state);
        self.rounds.send_replace(Some(error.into()));
    }

    /// A late grant was renewed by itself, or found gone.
    pub(crate) fn follow_up(&self, holding: &Holding, sent: Instant, grant: Option<Grant>) {
        self.expire();
        let mut state = self.state();
        match grant {
            Some(Grant { remaining, .. }) => {
                let cap = remaining.map(|left| sent + left - self.timing.margin());
                state.book.set_cap(holding.attempt, cap);
            }
            None => {
                let held = state.book.drop_held(holding.attempt);
                let lost = held.map(|holding| (holding, LostReason::SessionClosed));
                self.tell_lost(state, lost.into_iter().collect());
            }
        }
    }

    /// The store has the session no more, by its own word.
    pub(crate) fn gone(&self) {
        let mut state = self.state();
        state.freed = true;
        self.end_all(state, Cause::Store, &LostReason::SessionClosed);
    }

    pub(crate) fn closing(&self) -> Closing {
        let state = self.state();
        Closing {
            not_before: match state.cause {
                Some(Cause::Lapsed) => state.deadline,
                _ => self.now(),
            },
            until: state
                .deadline
                .max(state.sent + self.timing.ttl.as_duration()),
        }
    }

    /// Nothing is done for it any more; `freed` when the store is known to have nothing of it.
    pub(crate) fn finish(&self, freed: bool) {
        let mut state = self.state();
        state.freed |= freed;
        // Guards are left only where the keeper was stopped in the midst of its work.
        self.end_all(state, Cause::Lapsed, &LostReason::Overslept);
        let mut state = self.state();
        state.book.give_up_returned();
        self.advance(Phase::Over);
    }
}

fn told(why: GoneReason) -> LostReason {
    match why {
        GoneReason::Ended => LostReason::SessionClosed,
        GoneReason::Revoked { by, reason } => LostReason::Revoked { by, reason },
    }
}
