//! Those who wait inside of this store object, and how they are told to look.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_spi::AttemptId;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Wakes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// One attempt may wait several times.
    waiting: BTreeMap<(AttemptId, u64), Arc<Signals>>,
    next: u64,
}

/// Each is remembered until it is asked for.
#[derive(Debug, Default)]
struct Signals {
    turn: Notify,
    gap: Notify,
}

/// Somebody who waits, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    wakes: &'a Wakes,
    place: (AttemptId, u64),
    signals: Arc<Signals>,
}

/// What a waiter is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    /// There is reason to try again.
    Turn,
    /// Something may have been missed.
    Gap,
}

impl Wakes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, attempt: AttemptId) -> Waiting<'_> {
        let mut table = self.table();
        let place = (attempt, table.next);
        table.next += 1;
        let signals = Arc::<Signals>::default();
        table.waiting.insert(place, Arc::clone(&signals));
        Waiting {
            wakes: self,
            place,
            signals,
        }
    }

    pub(crate) fn turn(&self, attempt: AttemptId) {
        let all = (attempt, 0)..=(attempt, u64::MAX);
        for signals in self.table().waiting.range(all).map(|(_, signals)| signals) {
            signals.turn.notify_one();
        }
    }

    /// Notifications may have been missed by anybody.
    pub(crate) fn gap(&self) {
        for signals in self.table().waiting.values() {
            signals.gap.notify_one();
        }
    }
}

impl Waiting<'_> {
    /// What is told next, or was told since the last time.
    pub(crate) async fn told(&self) -> Told {
        tokio::select! {
            biased;
            () = self.signals.turn.notified() => Told::Turn,
            () = self.signals.gap.notified() => Told::Gap,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.wakes.table().waiting.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: AttemptId = AttemptId::from_u128(1);
    const B: AttemptId = AttemptId::from_u128(2);

    #[tokio::test]
    async fn what_is_told_before_anybody_asks_is_not_lost() {
        let wakes = Wakes::default();
        let (one, two, other) = (wakes.register(A), wakes.register(A), wakes.register(B));
        wakes.turn(A);
        assert_eq!(one.told().await, Told::Turn);
        assert_eq!(two.told().await, Told::Turn);
        wakes.gap();
        for waiting in [&one, &two, &other] {
            assert_eq!(waiting.told().await, Told::Gap);
        }
        drop((one, two, other));
        assert!(wakes.table().waiting.is_empty());
    }
}
