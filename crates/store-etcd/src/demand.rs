//! Which keys are likely to be refused, so that the cheapest request comes first. Nothing but cost
//! depends on it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_spi::LockKey;

use crate::recent::Recent;

/// So many keys are remembered.
const KEYS_REMEMBERED: usize = 10_000;

/// What was last seen of the keys.
#[derive(Debug)]
pub(crate) struct Demand(Mutex<Recent<LockKey, Seen>>);

/// What was last seen of a key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Seen {
    /// Nobody held it or waited for it.
    #[default]
    Free,
    /// Somebody held it, and it will be free when that ends.
    Held,
    /// Others wait for it: when a holder ends, there is the next.
    Wanted,
}

impl Demand {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(KEYS_REMEMBERED)))
    }

    fn table(&self) -> MutexGuard<'_, Recent<LockKey, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(&self, key: &LockKey) -> Seen {
        self.table().get(key).copied().unwrap_or_default()
    }

    pub(crate) fn note(&self, key: &LockKey, seen: Seen) {
        self.table().remember(key.clone(), seen);
    }

    /// It was granted.
    pub(crate) fn granted(&self, key: &LockKey) {
        if self.of(key) == Seen::Free {
            self.note(key, Seen::Held);
        }
    }

    /// A grant of it has ended.
    pub(crate) fn ended(&self, key: &LockKey) {
        if self.of(key) == Seen::Held {
            self.note(key, Seen::Free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_wait_for_stays_wanted_when_a_holder_ends() {
        let (demand, key) = (Demand::new(), LockKey::new("k").unwrap());
        assert_eq!(demand.of(&key), Seen::Free);
        demand.granted(&key);
        assert_eq!(demand.of(&key), Seen::Held);
        demand.ended(&key);
        assert_eq!(demand.of(&key), Seen::Free);
        demand.note(&key, Seen::Wanted);
        demand.granted(&key);
        demand.ended(&key);
        assert_eq!(demand.of(&key), Seen::Wanted);
        demand.note(&key, Seen::Free);
        assert_eq!(demand.of(&key), Seen::Free);
    }
}
