//! A memory of the last so many.

use std::collections::BTreeMap;

/// Remembers at least the last `capacity` entries and at most twice as many: when the young half
/// is full it becomes the old one, and what was in the old one is forgotten.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    young: BTreeMap<K, V>,
    old: BTreeMap<K, V>,
    capacity: usize,
}

impl<K: Ord, V> Recent<K, V> {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self {
            young: BTreeMap::new(),
            old: BTreeMap::new(),
            capacity,
        }
    }

    pub(crate) fn remember(&mut self, key: K, value: V) {
        self.young.insert(key, value);
        if self.young.len() >= self.capacity {
            self.old = std::mem::take(&mut self.young);
        }
    }

    pub(crate) fn forget(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_memory_is_bounded() {
        let mut recent = Recent::new(10);
        for number in 0..95 {
            recent.remember(number, ());
        }
        assert!((85..95).all(|number| recent.contains(&number)));
        assert!((0..75).all(|number| !recent.contains(&number)));
    }

    #[test]
    fn the_newest_value_counts() {
        let mut recent = Recent::new(2);
        for value in [1, 2, 3] {
            recent.remember("a", value);
            recent.remember("b", value);
        }
        assert_eq!(recent.get(&"a"), Some(&3));
    }
}
