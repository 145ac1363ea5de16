//! Who of this store object waits for the same key.
//!
//! To find out who is right before it, a waiter reads the queue; where that is long, any place
//! before its own will do: until that has gone, its turn cannot come. Those who wait here know each
//! other's.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lock_spi::LockKey;

/// With fewer neighbours before it a waiter reads the queue.
const FEW: usize = 32;

/// By key and position: several may wait for one attempt.
#[derive(Debug, Default)]
pub(crate) struct Neighbours(Mutex<Lines>);

type Lines = BTreeMap<LockKey, BTreeMap<u64, Neighbour>>;

#[derive(Debug)]
struct Neighbour {
    ticket: Bytes,
    waits: usize,
}

/// Somebody who waits in line, for as long as this lives.
#[derive(Debug)]
pub(crate) struct InSight<'a> {
    neighbours: &'a Neighbours,
    key: &'a LockKey,
    position: u64,
}

impl Neighbours {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter<'a>(
        &'a self,
        key: &'a LockKey,
        position: u64,
        ticket: Bytes,
    ) -> InSight<'a> {
        let mut lines = self.lines();
        let line = lines.entry(key.clone()).or_default();
        let neighbour = Neighbour { ticket, waits: 0 };
        line.entry(position).or_insert(neighbour).waits += 1;
        InSight {
            neighbours: self,
            key,
            position,
        }
    }
}

impl InSight<'_> {
    /// The ticket of the nearest neighbour before it, where there are many.
    pub(crate) fn one_of_many_before(&self) -> Option<Bytes> {
        let lines = self.neighbours.lines();
        let mut before = lines.get(self.key)?.range(..self.position).rev();
        let (_, nearest) = before.next()?;
        before.nth(FEW - 1)?;
        Some(nearest.ticket.clone())
    }
}

impl Drop for InSight<'_> {
    fn drop(&mut self) {
        let mut lines = self.neighbours.lines();
        let Some(line) = lines.get_mut(self.key) else {
            return;
        };
        if let Some(neighbour) = line.get_mut(&self.position) {
            neighbour.waits -= 1;
            if neighbour.waits == 0 {
                line.remove(&self.position);
            }
        }
        if line.is_empty() {
            lines.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_many_wait_the_nearest_before_is_known_and_those_gone_are_not() {
        let neighbours = Neighbours::default();
        let keys = [LockKey::new("k").unwrap(), LockKey::new("other").unwrap()];
        let enter =
            |key, position: u64| neighbours.enter(key, position, position.to_string().into());
        let _of_other = enter(&keys[1], 1);
        let mut line: Vec<_> = (0..40).map(|number| enter(&keys[0], 10 * number)).collect();
        assert_eq!(line[32].one_of_many_before(), None, "they are few");
        assert_eq!(line[33].one_of_many_before().unwrap(), "320");
        let twice = enter(&keys[0], 380);
        drop(line.remove(38));
        assert_eq!(line[38].one_of_many_before().unwrap(), "380");
        drop(twice);
        assert_eq!(line[38].one_of_many_before().unwrap(), "370");
        drop(line);
        assert_eq!(neighbours.lines().len(), 1);
    }
}
