//! The hosts of a database, and which of them was last of use.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A host and its port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Host {
    /// A name, an address, or the folder of a socket.
    pub(super) name: String,
    pub(super) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Never empty.
#[derive(Debug)]
pub(super) struct Hosts {
    known: Vec<Host>,
    /// The one that was last of use; where it was not, the one after it.
    preferred: AtomicUsize,
}

impl Hosts {
    pub(super) const fn new(known: Vec<Host>) -> Self {
        Self {
            known,
            preferred: AtomicUsize::new(0),
        }
    }

    /// All of them, the one that is most likely of use first.
    pub(super) fn in_order(&self) -> impl ExactSizeIterator<Item = (usize, &Host)> {
        let first = self.preferred.load(Ordering::Relaxed);
        let count = self.known.len();
        (0..count).map(move |step| {
            let place = (first + step) % count;
            (place, &self.known[place])
        })
    }

    pub(super) fn was_of_use(&self, place: usize) {
        self.preferred.store(place, Ordering::Relaxed);
    }

    /// The next search begins behind this one.
    pub(super) fn was_of_no_use(&self, place: usize) {
        let next = (place + 1) % self.known.len();
        // Unless somebody has found a better one meanwhile.
        if self.preferred.load(Ordering::Relaxed) == place {
            self.preferred.store(next, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Hosts {
        let host = |name: &&str| Host {
            name: (*name).into(),
            port: 1,
        };
        Hosts::new(names.iter().map(host).collect())
    }

    fn order(hosts: &Hosts) -> Vec<&str> {
        hosts.in_order().map(|(_, host)| &*host.name).collect()
    }

    #[test]
    fn the_one_that_was_of_use_comes_first() {
        let hosts = hosts(&["a", "b", "c"]);
        assert_eq!(order(&hosts), ["a", "b", "c"]);
        hosts.was_of_use(1);
        assert_eq!(order(&hosts), ["b", "c", "a"]);
        hosts.was_of_no_use(1);
        assert_eq!(order(&hosts), ["c", "a", "b"]);
        hosts.was_of_no_use(1);
        assert_eq!(order(&hosts), ["c", "a", "b"], "it was not the first");
        hosts.was_of_no_use(2);
        assert_eq!(order(&hosts), ["a", "b", "c"]);
    }
}
