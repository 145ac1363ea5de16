mod book;
mod health;
mod holders;
mod keeping;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_spi::{GrantRef, Instant, Owner, SessionId};
use tokio::sync::{Notify, mpsc, watch};

use self::book::Book;
pub(crate) use self::holders::Opened;
pub(crate) use self::keeping::{Closing, Step};
use crate::backend::Backend;
use crate::backoff::Pauses;
use crate::error::Error;
use crate::holding::{Holding, Renewal};
use crate::lost::LostReason;
use crate::releaser::Job;
use crate::timing::Timing;

/// A lease in the store, and what the client has under it.
///
/// This is the bookkeeping, all of it synchronous; [`keep`](crate::keeper::keep) does the talking.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) origin: Origin,
    /// It has one grant, which can be handed over with it.
    pub(crate) transferable: bool,
    pub(crate) owner: Owner,
    pub(crate) timing: Timing,
    pub(crate) backend: Arc<Backend>,
    /// Wakes the keeper.
    pub(crate) kick: Notify,
    /// Changes at the end of each renewal, to the error if it failed.
    pub(crate) rounds: watch::Sender<Option<Error>>,
    /// Weak, so that a forgotten guard does not keep the releaser of a dropped client.
    releaser: mpsc::WeakUnboundedSender<Job>,
    /// Keeps attempts from beginning while a renewal sets out.
    turnstile: Mutex<()>,
    /// Written under the lock of `state`.
    phase: watch::Sender<Phase>,
    state: Mutex<State>,
}

/// How a client comes to have a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// Another client has handed it over.
    Adopted,
    Opened,
}

/// How far a session has come; it only goes forward.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    Opening,
    Open,
    /// Kept no more; its keeper closes it.
    Ending,
    /// Nothing is done for it any more.
    Over,
}

struct State {
    book: Book,
    /// Takes nothing new, and ends with its last guard.
    retiring: bool,
    /// When the last confirmed renewal was sent.
    confirmed: Instant,
    /// How long the store keeps the session, as far as is confirmed.
    deadline: Instant,
    /// When the last renewal was sent, whatever became of it.
    sent: Instant,
    next_renewal: Instant,
    /// A renewal is wanted before that, and after the one under way.
    renew_now: bool,
    renewing: bool,
    /// A renewal failed since the last confirmed one.
    failed: bool,
    pauses: Pauses,
    /// Why it is not kept any more.
    cause: Option<Cause>,
    /// Why it could not be opened.
    failure: Option<Error>,
    /// The store is known to have nothing of it any more.
    freed: bool,
}

/// Why a session is not kept any more; the first cause counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    /// The client has no more use for it.
    Client,
    /// It goes to another client.
    HandedOver,
    /// Its guards' deadline passed, or nobody runs its keeper.
    Lapsed,
    /// The store has it no more, or never had it.
    Store,
}

impl Session {
    pub(crate) fn new(
        (origin, id): (Origin, SessionId),
        transferable: bool,
        backend: Arc<Backend>,
        timing: Timing,
        owner: Owner,
        releaser: mpsc::WeakUnboundedSender<Job>,
    ) -> Self {
        let now = backend.runtime.now();
        Self {
            id,
            origin,
            transferable,
            owner,
            timing,
            backend,
            kick: Notify::new(),
            turnstile: Mutex::default(),
            rounds: watch::Sender::new(None),
            releaser,
            phase: watch::Sender::new(Phase::Opening),
            state: Mutex::new(State {
                book: Book::default(),
                retiring: false,
                confirmed: now,
                deadline: now,
                sent: now,
                next_renewal: now,
                renew_now: false,
                renewing: false,
                failed: false,
                pauses: Pauses::new(timing.first_pause(), timing.renew_every),
                cause: None,
                failure: None,
                freed: false,
            }),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.backend.runtime.now()
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Resolves when it has come at least as far as `phase`.
    pub(crate) async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // It cannot fail: the sender lives in `self`.
        drop(phases.wait_for(|now| *now >= phase).await);
    }

    /// Hands work to the client's releaser. Without one the client is gone and its sessions are
    /// ending: nothing is left to do.
    pub(crate) fn hand_over(&self, job: Job) {
        if let Some(releaser) = self.releaser.upgrade() {
            // Refused only when the runtime of the releaser has ended; then the ttl does it.
            drop(releaser.send(job));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what has outlived its deadline. Whoever asks calls this, so that nothing depends on
    /// the keeper having run.
    fn expire(&self) -> Phase {
        let now = self.now();
        let mut state = self.state();
        let phase = self.phase();
        if phase != Phase::Open {
            return phase;
        }
        let reason = state.missed(now);
        if now >= state.believed(&self.timing) {
            self.end_all(state, Cause::Lapsed, &reason);
            return Phase::Ending;
        }
        let mut ended = Vec::new();
        while let Some(attempt) = state.book.first_capped(now) {
            ended.extend(state.book.return_held(attempt));
        }
        let reasons = ended.iter().map(|holding| match holding.renewal {
            Renewal::Kept => reason.clone(),
            Renewal::Never => LostReason::Expired,
        });
        let lost = ended.iter().cloned().zip(reasons).collect();
        self.tell_lost(state, lost);
        for holding in ended {
            holding.hand_over();
        }
        phase
    }

    /// Ends everything under it; its keeper closes it, unless the store has nothing of it.
    fn end_all(&self, mut state: MutexGuard<'_, State>, cause: Cause, reason: &LostReason) {
        let held = state.book.return_all();
        state.cause.get_or_insert(cause);
        if state.freed {
            state.book.settle_all();
        }
        self.advance(Phase::Ending);
        let lost = held.into_iter().map(|holding| (holding, reason.clone()));
        self.tell_lost(state, lost.collect());
        self.kick.notify_one();
    }

    /// Tells the holders under the lock, so that nobody sees a grant that is neither held nor lost;
    /// and everybody else outside it.
    fn tell_lost(&self, state: MutexGuard<'_, State>, lost: Vec<(Arc<Holding>, LostReason)>) {
        for (holding, reason) in &lost {
            holding.end(reason);
        }
        drop(state);
        for (holding, reason) in lost {
            self.backend
                .telemetry
                .lost(&holding.grant, self.id, &self.owner, &reason);
        }
    }

    /// Goes on to a phase, never back; under the lock of the state.
    fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let forward = *now < phase;
            *now = phase.max(*now);
            forward
        });
    }

    fn kick_if_useless(&self, state: &State) {
        if state.retiring && state.book.is_deserted() {
            self.kick.notify_one();
        }
    }
}

/// For the releaser and the client.
impl Session {
    /// The store is known to have this grant no more.
    pub(crate) fn settle(&self, holding: &Holding) {
        self.state().book.settle(holding.attempt);
    }

    /// Takes nothing new any more, and ends with its last guard.
    pub(crate) fn retire(&self) {
        let mut state = self.state();
        state.retiring = true;
        self.kick_if_useless(&state);
    }

    /// Whether the store is known to have nothing of it any more.
    pub(crate) fn is_freed(&self) -> bool {
        self.state().freed
    }

    /// Whether it was the client that ended the session, and the grants with it.
    pub(crate) fn is_ended_by_client(&self) -> bool {
        self.state().cause == Some(Cause::Client)
    }

    /// Ends it at the client's wish. Answers with the grants that were held or on their way back.
    pub(crate) fn end(&self) -> Vec<GrantRef> {
        let state = self.state();
        let held = state.book.held().map(|holding| &holding.grant);
        let grants = held.chain(state.book.returned()).cloned().collect();
        self.end_all(state, Cause::Client, &LostReason::SessionClosed);
        grants
    }

    /// Grants that the store may still have.
    pub(crate) fn left_behind(&self) -> Vec<GrantRef> {
        self.state().book.returned().cloned().collect()
    }
}

impl State {
    /// Until when its guards are to be believed in.
    fn believed(&self, timing: &Timing) -> Instant {
        self.deadline - timing.margin()
    }

    /// Why a deadline was missed.
    ///
    /// Overslept, when no renewal was even tried since the last confirmed one, or when the miss is
    /// noticed only after the store's own deadline: something that should have run did not.
    fn missed(&self, now: Instant) -> LostReason {
        let tried = self.failed || self.renewing;
        if tried && now < self.deadline {
            LostReason::Unreachable
        } else {
            LostReason::Overslept
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No more than this: whoever holds a lock has a session in it, and that the whole client.
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}
