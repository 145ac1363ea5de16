use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_spi::Instant;
use tokio::sync::OnceCell;

/// Where the connections to one member stand, made when it is first asked.
///
/// A connection that the network has forgotten looks alive until its pings find out, which takes
/// longer than a lock may live. So it is noted here since when calls got no answer, and after so
/// long a silence the next call connects anew. Who still waits on the old connections keeps them.
#[derive(Debug)]
pub(super) struct Slot<T>(Mutex<State<T>>);

/// Where to find the connections, or to put them.
pub(super) type Cell<T> = Arc<OnceCell<T>>;

#[derive(Debug)]
struct State<T> {
    cell: Cell<T>,
    heard: Option<Instant>,
    silent_since: Option<Instant>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Mutex::new(State::new()))
    }
}

impl<T> State<T> {
    fn new() -> Self {
        Self {
            cell: Cell::default(),
            heard: None,
            silent_since: None,
        }
    }
}

impl<T> Slot<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connections for a call that is made now: new ones after a silence of this length.
    pub(super) fn cell(&self, now: Instant, limit: Duration) -> Cell<T> {
        let mut state = self.state();
        let silent = |since| now.saturating_since(since) >= limit;
        if state.silent_since.is_some_and(silent) {
            *state = State::new();
        }
        Arc::clone(&state.cell)
    }

    /// There was an answer on these connections.
    pub(super) fn heard(&self, cell: &Cell<T>, now: Instant) {
        let mut state = self.state();
        if Arc::ptr_eq(&state.cell, cell) {
            state.heard = Some(now);
            state.silent_since = None;
        }
    }

    /// There was none to a call that was sent then.
    pub(super) fn silent(&self, cell: &Cell<T>, sent: Instant) {
        let mut state = self.state();
        if Arc::ptr_eq(&state.cell, cell) && state.heard <= Some(sent) {
            let since = state.silent_since.map_or(sent, |since| since.min(sent));
            state.silent_since = Some(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    #[test]
    fn after_the_limit_of_silence_there_are_new_connections() {
        let slot = Slot::<()>::default();
        let first = slot.cell(at(0), LIMIT);
        slot.silent(&first, at(0));
        slot.silent(&first, at(500));
        assert!(Arc::ptr_eq(&first, &slot.cell(at(999), LIMIT)));
        let second = slot.cell(at(1_000), LIMIT);
        assert!(!Arc::ptr_eq(&first, &second));
        // What is said of the old ones is not about the new ones.
        slot.silent(&first, at(0));
        assert!(Arc::ptr_eq(&second, &slot.cell(at(5_000), LIMIT)));
    }

    #[test]
    fn an_answer_ends_the_silence() {
        let slot = Slot::<()>::default();
        let cell = slot.cell(at(0), LIMIT);
        slot.silent(&cell, at(0));
        slot.heard(&cell, at(900));
        assert!(Arc::ptr_eq(&cell, &slot.cell(at(5_000), LIMIT)));
        // One call was lost, and others that were sent later were answered.
        slot.silent(&cell, at(800));
        assert!(Arc::ptr_eq(&cell, &slot.cell(at(5_000), LIMIT)));
        slot.silent(&cell, at(901));
        assert!(!Arc::ptr_eq(&cell, &slot.cell(at(5_000), LIMIT)));
    }
}
