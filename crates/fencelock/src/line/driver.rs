use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_spi::{Instant, LockKey, Place, Queue};

use super::{Begun, Front, Kind, Lines, Seen, Signals, Then};
use crate::attempt::OpenAttempt;
use crate::backend::Backend;
use crate::backoff::Pauses;
use crate::error::Error;
use crate::session::Phase;
use crate::sessions::Sessions;
use crate::timing::Timing;
use crate::wish::{Tried, Wish};

/// The longest pause between hearing of a release and trying, for those who have no place: they
/// spread over it.
const SPREAD: Duration = Duration::from_millis(20);
/// The first pause after hints that were in vain twice.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Serves a line: asks the store for its front, waits for its turn, hands out what is granted.
///
/// A task of its own, so that a turn is taken in time though nobody polls those who wait.
pub(super) struct Driver {
    lines: Arc<Lines>,
    /// Weak, so that a line does not keep a client that was dropped.
    sessions: Weak<Sessions>,
    backend: Arc<Backend>,
    key: LockKey,
    timing: Timing,
    kind: Kind,
    signals: Arc<Signals>,
}

/// How far a driver has come with what it asks the store for.
struct Progress {
    attempt: Option<OpenAttempt>,
    /// Until then it leaves the store alone while this client occupies the key itself.
    patience: Instant,
    /// Failures in a row.
    failures: u32,
    /// How many were ahead at the last hint that was in vain.
    ahead: Option<u32>,
    pauses: Pauses,
}

impl Driver {
    pub(super) fn new(
        lines: &Arc<Lines>,
        sessions: &Arc<Sessions>,
        wish: &Wish,
        signals: Arc<Signals>,
    ) -> Self {
        Self {
            lines: Arc::clone(lines),
            sessions: Arc::downgrade(sessions),
            backend: Arc::clone(sessions.backend()),
            key: wish.key.clone(),
            timing: wish.timing,
            kind: Kind::of(wish),
            signals,
        }
    }

    /// Until nobody is in the line.
    pub(super) async fn run(self) {
        let mut progress = Progress {
            attempt: None,
            patience: self.look_again(),
            failures: 0,
            ahead: None,
            pauses: Pauses::new(FIRST_PAUSE, self.lines.pace.look_again),
        };
        while let Some(front) = self.lines.front(&self.key, self.kind) {
            let Some(sessions) = self.sessions.upgrade() else {
                return;
            };
            tokio::select! {
                biased;
                () = self.serve(front, &sessions, &mut progress) => {}
                // Its call may be going on still.
                () = self.deserted() => progress.attempt = None,
            }
        }
    }

    /// One step towards a grant for the front. May be dropped at any time: what is under way in the
    /// store is its attempt's to undo.
    async fn serve(&self, front: Front, sessions: &Arc<Sessions>, progress: &mut Progress) {
        let Front {
            payload,
            renewal,
            begun,
            occupied,
        } = front;
        if progress.attempt.is_none() {
            if let Some(Begun { attempt, then, .. }) = begun {
                progress.attempt = attempt;
                return self.go_on(progress, then).await;
            }
            if occupied && self.backend.runtime.now() < progress.patience {
                return self.vacant(progress.patience).await;
            }
        }
        let attempt = &mut progress.attempt;
        attempt.take_if(|attempt| !attempt.is_good_for(&payload));
        let wish = Wish {
            key: self.key.clone(),
            timing: self.timing,
            payload,
            renewal,
            transferable: self.kind.transferable,
        };
        self.lines.set_out(&self.key, self.kind);
        let tried = wish.try_once(sessions, attempt, Queue::Join).await;
        match tried {
            Tried::Granted(guard) => {
                progress.patience = self.look_again();
                progress.failures = 0;
                progress.pauses.reset();
                progress.ahead = None;
                self.lines.deliver(&self.key, self.kind, &wish, guard);
            }
            Tried::Failed(error) if !error.is_retryable() => self.fail(&error),
            tried => {
                let then = Then::after(&tried);
                self.see(Seen::of(tried, attempt.as_ref()));
                self.go_on(progress, then).await;
            }
        }
    }

    /// Waits for when it is worth trying again.
    async fn go_on(&self, progress: &mut Progress, then: Then) {
        match then {
            Then::Pause => {
                progress.failures = progress.failures.saturating_add(1);
                let runtime = &self.backend.runtime;
                let backoff = &self.lines.pace.backoff;
                let pause = backoff.pause(progress.failures, runtime.random());
                runtime.sleep(pause).await;
            }
            Then::Wait(place) => {
                progress.failures = 0;
                self.hint(progress, place).await;
            }
        }
    }

    fn see(&self, seen: Seen) {
        self.lines.see(&self.key, self.kind, seen);
    }

    fn fail(&self, error: &Error) {
        self.lines.fail(&self.key, self.kind, error);
    }

    /// When to look again though nothing was heard.
    fn look_again(&self) -> Instant {
        let runtime = &self.backend.runtime;
        let period = self.lines.pace.look_again;
        runtime.now() + period - runtime.jitter(period / 4)
    }

    /// Resolves when nobody is in the line any more.
    async fn deserted(&self) {
        while !self.lines.is_deserted(&self.key, self.kind) {
            self.signals.left.notified().await;
        }
    }

    /// Waits until this client does not occupy the key any more, or until `latest`.
    async fn vacant(&self, latest: Instant) {
        tokio::select! {
            biased;
            () = self.signals.vacant.notified() => {}
            () = self.backend.runtime.sleep_until(latest) => {}
        }
    }

    /// Waits until the store hints that it is worth trying again, until the session is over, or
    /// until it is time to look again.
    async fn hint(&self, progress: &mut Progress, place: Option<Place>) {
        let Some(attempt) = &progress.attempt else {
            return;
        };
        let runtime = &self.backend.runtime;
        let next_in_line = place.as_ref().is_none_or(|place| place.ahead == Some(0));
        let latest = match next_in_line {
            true => self.look_again(),
            false => self.look_again() + self.lines.pace.look_again * 3 / 2,
        };
        let ahead = place.as_ref().and_then(|place| place.ahead);
        let has_place = place.is_some();
        let hinted = async {
            let request = attempt.wait_request(place);
            if self.backend.store.await_release(request).await.is_err() {
                // It cannot hint now; the timer will do.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = attempt.session().reached(Phase::Ending) => return,
            () = hinted => {}
            () = runtime.sleep_until(latest) => return,
        }
        if !has_place {
            runtime.sleep(SPREAD / 4 + runtime.jitter(SPREAD)).await;
        } else if progress.ahead.replace(ahead.unwrap_or(0)) == Some(ahead.unwrap_or(0)) {
            runtime.sleep(progress.pauses.next(&**runtime)).await;
        } else {
            progress.pauses.reset();
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.lines.close(&self.key, self.kind, &self.signals);
    }
}
