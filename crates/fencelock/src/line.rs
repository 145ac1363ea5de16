//! Those of one client who wait for the same key: a line, of which only the front is known to the
//! store, by one place in the key's queue.

mod driver;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use lock_spi::{Effect, Holder, LockKey, Payload, Place, Ttl};
use tokio::sync::{Notify, oneshot};

use self::driver::Driver;
use crate::attempt::OpenAttempt;
use crate::backoff::Backoff;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::holding::Renewal;
use crate::sessions::Sessions;
use crate::telemetry::Counted;
use crate::wish::{Tried, Wish};

/// How often those who wait look again, and how long they pause when the store fails them.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// For who is next in line; the others take two and a half times as long.
    pub(crate) look_again: Duration,
    pub(crate) backoff: Arc<dyn Backoff>,
}

/// The lines of a client.
#[derive(Debug)]
pub(crate) struct Lines {
    pace: Pace,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    keys: BTreeMap<LockKey, Key>,
    /// Tickets rise in the order in which a line is served.
    first_ticket: i64,
    last_ticket: i64,
}

#[derive(Debug, Default)]
struct Key {
    /// What of this client keeps the key from its lines; see [`Occupied`].
    occupants: usize,
    lines: BTreeMap<Kind, Line>,
}

/// Those who wait for one key stand in one line if their sessions are of one kind.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Kind {
    ttl: Ttl,
    transferable: bool,
}

/// Served by its driver, for as long as somebody is in it.
#[derive(Debug)]
struct Line {
    waiters: BTreeMap<i64, Waiter>,
    /// What was begun outside, for the driver to go on with.
    begun: Option<Begun>,
    seen: Seen,
    signals: Arc<Signals>,
}

/// For the driver; each is remembered until it is asked for.
#[derive(Debug, Default)]
struct Signals {
    /// Somebody has left the line.
    left: Notify,
    /// Nothing of this client occupies the key any more.
    vacant: Notify,
}

#[derive(Debug)]
struct Waiter {
    payload: Payload,
    renewal: Renewal,
    answer: oneshot::Sender<Result<Guard>>,
}

/// A first try that was not granted, and the attempt if it can go on.
#[derive(Debug)]
pub(crate) struct Begun {
    attempt: Option<OpenAttempt>,
    then: Then,
    seen: Seen,
}

/// What is to be done before the next try.
#[derive(Debug)]
enum Then {
    Pause,
    /// Wait for the turn of this place, if there is one.
    Wait(Option<Place>),
}

/// What a line has met in the store so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Who held the key when it was last refused.
    pub(crate) holder: Option<Holder>,
    /// What the last try met instead of an answer.
    pub(crate) failure: Option<Arc<Error>>,
    /// A try is under way, or was lost: the key may be granted without anybody knowing.
    pub(crate) doubtful: bool,
}

impl Begun {
    /// A try that was not granted, and the attempt as it left it.
    pub(crate) fn new(tried: Tried, attempt: Option<OpenAttempt>) -> Self {
        Self {
            then: Then::after(&tried),
            seen: Seen::of(tried, attempt.as_ref()),
            attempt,
        }
    }

    pub(crate) fn into_seen(self) -> Seen {
        self.seen
    }
}

impl Then {
    fn after(tried: &Tried) -> Self {
        match tried {
            Tried::Failed(_) => Self::Pause,
            Tried::Queued(place) => Self::Wait(Some(place.clone())),
            Tried::Granted(_) | Tried::Held(_) => Self::Wait(None),
        }
    }
}

impl Seen {
    fn of(tried: Tried, attempt: Option<&OpenAttempt>) -> Self {
        let doubtful = attempt.is_some_and(OpenAttempt::is_doubtful);
        match tried {
            Tried::Granted(_) | Tried::Queued(_) => Self {
                doubtful,
                ..Self::default()
            },
            Tried::Held(holder) => Self {
                holder,
                failure: None,
                doubtful,
            },
            Tried::Failed(error) => Self {
                holder: None,
                doubtful: doubtful || error.effect() == Effect::Unknown,
                failure: Some(Arc::new(error)),
            },
        }
    }

    /// Whether the key may be held although nobody was told so.
    pub(crate) fn effect(&self) -> Effect {
        match self.doubtful {
            true => Effect::Unknown,
            false => Effect::None,
        }
    }
}

/// Who is served next, and what there is to know for it.
struct Front {
    payload: Payload,
    renewal: Renewal,
    begun: Option<Begun>,
    occupied: bool,
}

impl Lines {
    pub(crate) fn new(pace: Pace) -> Arc<Self> {
        Arc::new(Self {
            pace,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Occupies a key for a try outside any line, or for a grant.
    pub(crate) fn occupy(self: &Arc<Self>, key: &LockKey) -> Occupied {
        let mut state = self.state();
        match state.keys.get_mut(key) {
            Some(known) => known.occupants += 1,
            None => state.occupy_first(key),
        }
        self.occupied(key)
    }

    /// The same for one who would wait for it: `None` while this client occupies the key or has a
    /// line for it.
    pub(crate) fn occupy_free(self: &Arc<Self>, key: &LockKey) -> Option<Occupied> {
        let mut state = self.state();
        if state.keys.contains_key(key) {
            return None;
        }
        state.occupy_first(key);
        Some(self.occupied(key))
    }

    fn occupied(self: &Arc<Self>, key: &LockKey) -> Occupied {
        Occupied {
            lines: Arc::clone(self),
            key: key.clone(),
        }
    }

    /// What those see who wait for a key, if somebody does and the store does not fail them.
    pub(crate) fn refusal(&self, key: &LockKey) -> Option<Option<Holder>> {
        let state = self.state();
        let mut lines = state.keys.get(key)?.lines.values();
        let waited_for = lines.find(|line| !line.waiters.is_empty())?;
        let Seen {
            holder, failure, ..
        } = &waited_for.seen;
        failure.is_none().then(|| holder.clone())
    }

    /// Takes a place in a key's line: at its front with an attempt that was `begun`, since others
    /// may have come in meanwhile, else at its end.
    pub(crate) fn join(
        self: &Arc<Self>,
        sessions: &Arc<Sessions>,
        wish: &Wish,
        begun: Option<Begun>,
    ) -> Waiting {
        let (answer, granted) = oneshot::channel();
        let waiter = Waiter {
            payload: wish.payload.clone(),
            renewal: wish.renewal,
            answer,
        };
        let (key, kind) = (wish.key.clone(), Kind::of(wish));
        let mut driver = None;
        let mut state = self.state();
        let ticket = state.ticket(begun.is_some());
        let known = state.keys.entry(key.clone()).or_default();
        let line = known.lines.entry(kind).or_insert_with(|| {
            let signals = Arc::default();
            driver = Some(Driver::new(self, sessions, wish, Arc::clone(&signals)));
            Line {
                waiters: BTreeMap::new(),
                begun: None,
                seen: begun
                    .as_ref()
                    .map(|begun| begun.seen.clone())
                    .unwrap_or_default(),
                signals,
            }
        });
        line.waiters.insert(ticket, waiter);
        let surplus = match line.begun {
            None => {
                line.begun = begun;
                None
            }
            Some(_) => begun,
        };
        drop(state);
        // What touches the session or the runtime is done outside the lock.
        drop(surplus);
        if let Some(driver) = driver {
            sessions.backend().runtime.spawn(Box::pin(driver.run()));
        }
        Waiting {
            lines: Arc::clone(self),
            key,
            kind,
            ticket,
            granted,
            _counted: sessions.backend().telemetry.count_waiter(),
        }
    }

    fn vacate(&self, key: &LockKey) {
        let mut state = self.state();
        let Some(known) = state.keys.get_mut(key) else {
            return;
        };
        known.occupants -= 1;
        if known.occupants == 0 {
            for line in known.lines.values() {
                line.signals.vacant.notify_one();
            }
            state.forget_useless(key);
        }
    }

    fn leave(&self, key: &LockKey, kind: Kind, ticket: i64) {
        if let Some(line) = self.state().line(key, kind)
            && line.waiters.remove(&ticket).is_some()
        {
            line.signals.left.notify_one();
        }
    }
}

/// For the driver of a line.
impl Lines {
    /// Who is next; `None` ends the line, since nobody is.
    fn front(&self, key: &LockKey, kind: Kind) -> Option<Front> {
        let mut state = self.state();
        let known = state.keys.get_mut(key)?;
        let line = known.lines.get_mut(&kind)?;
        if let Some(waiter) = line.waiters.values().next() {
            return Some(Front {
                payload: waiter.payload.clone(),
                renewal: waiter.renewal,
                begun: line.begun.take(),
                occupied: known.occupants > 0,
            });
        }
        let ended = known.lines.remove(&kind);
        state.forget_useless(key);
        drop(state);
        drop(ended);
        None
    }

    fn is_deserted(&self, key: &LockKey, kind: Kind) -> bool {
        let mut state = self.state();
        state
            .line(key, kind)
            .is_none_or(|line| line.waiters.is_empty())
    }

    /// A try is under way.
    fn set_out(&self, key: &LockKey, kind: Kind) {
        if let Some(line) = self.state().line(key, kind) {
            line.seen.doubtful = true;
        }
    }

    fn see(&self, key: &LockKey, kind: Kind, seen: Seen) {
        if let Some(line) = self.state().line(key, kind) {
            line.seen = seen;
        }
    }

    /// Hands a guard to the first who wished for just that; without one it is given back.
    fn deliver(&self, key: &LockKey, kind: Kind, wish: &Wish, guard: Guard) {
        let mut answer = Ok(guard);
        while let Some(waiter) = self.pop(key, kind, wish) {
            match waiter.answer.send(answer) {
                Ok(()) => return,
                Err(refused) => answer = refused,
            }
        }
    }

    fn pop(&self, key: &LockKey, kind: Kind, wish: &Wish) -> Option<Waiter> {
        let mut state = self.state();
        let line = state.line(key, kind)?;
        line.seen = Seen::default();
        let first = line.waiters.first_entry()?;
        let Waiter {
            payload, renewal, ..
        } = first.get();
        let fits = *payload == wish.payload && *renewal == wish.renewal;
        fits.then(|| first.remove())
    }

    /// Nobody in the line can be served.
    fn fail(&self, key: &LockKey, kind: Kind, error: &Error) {
        let waiters = self.state().line(key, kind).map(|line| {
            line.seen = Seen::default();
            std::mem::take(&mut line.waiters)
        });
        for waiter in waiters.into_iter().flat_map(BTreeMap::into_values) {
            // Those who have left do not mind.
            drop(waiter.answer.send(Err(error.share())));
        }
    }

    /// The driver has ended; whoever is in its line still learns it by being dropped.
    fn close(&self, key: &LockKey, kind: Kind, signals: &Arc<Signals>) {
        let mut state = self.state();
        let is_own = |line: &mut Line| Arc::ptr_eq(&line.signals, signals);
        if !state.line(key, kind).is_some_and(is_own) {
            return;
        }
        let known = state.keys.get_mut(key);
        let ended = known.and_then(|known| known.lines.remove(&kind));
        state.forget_useless(key);
        drop(state);
        drop(ended);
    }
}

impl Kind {
    fn of(wish: &Wish) -> Self {
        Self {
            ttl: wish.timing.ttl,
            transferable: wish.transferable,
        }
    }
}

impl State {
    fn line(&mut self, key: &LockKey, kind: Kind) -> Option<&mut Line> {
        self.keys.get_mut(key)?.lines.get_mut(&kind)
    }

    fn occupy_first(&mut self, key: &LockKey) {
        let known = Key {
            occupants: 1,
            ..Key::default()
        };
        self.keys.insert(key.clone(), known);
    }

    fn ticket(&mut self, at_the_front: bool) -> i64 {
        match at_the_front {
            true => {
                self.first_ticket -= 1;
                self.first_ticket
            }
            false => {
                self.last_ticket += 1;
                self.last_ticket
            }
        }
    }

    fn forget_useless(&mut self, key: &LockKey) {
        let is_useless = |known: &Key| known.occupants == 0 && known.lines.is_empty();
        if self.keys.get(key).is_some_and(is_useless) {
            self.keys.remove(key);
        }
    }
}

/// Something of this client keeps a key: a grant that the store may still have, or a try under way.
/// While this lives it would be vain to ask the store for another grant.
pub(crate) struct Occupied {
    lines: Arc<Lines>,
    key: LockKey,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.lines.vacate(&self.key);
    }
}

impl fmt::Debug for Occupied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Occupied").field(&self.key).finish()
    }
}

/// Somebody in a line: resolves to the guard. Dropped, it leaves.
#[must_use = "await it"]
pub(crate) struct Waiting {
    lines: Arc<Lines>,
    key: LockKey,
    kind: Kind,
    ticket: i64,
    granted: oneshot::Receiver<Result<Guard>>,
    _counted: Counted,
}

impl Waiting {
    /// What its line has seen, and whether something may be held for it in spite of its leaving.
    pub(crate) fn seen(&self) -> (Seen, Effect) {
        let mut state = self.lines.state();
        let Some(line) = state.line(&self.key, self.kind) else {
            return (Seen::default(), Effect::None);
        };
        // Any other in the line goes on with the attempt.
        let effect = match line.waiters.len() {
            1 => line.seen.effect(),
            _ => Effect::None,
        };
        (line.seen.clone(), effect)
    }
}

impl Future for Waiting {
    type Output = Result<Guard>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.granted).poll(context).map(|answer| {
            let ended = "the task that waits for the lock has ended with its runtime";
            answer.unwrap_or_else(|_| Err(Error::unavailable(Effect::Unknown, ended)))
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.lines.leave(&self.key, self.kind, self.ticket);
    }
}
