use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One of so many seeds is played twice.
const TWICE: u64 = 20;

/// The seeds that are still to be played, for several workers.
#[derive(Debug)]
pub struct Seeds {
    next: AtomicU64,
    end: u64,
    over: AtomicBool,
}

impl Seeds {
    /// From `first` up to, and without, `end`.
    #[must_use]
    pub const fn new(first: u64, end: u64) -> Self {
        Self {
            next: AtomicU64::new(first),
            end,
            over: AtomicBool::new(false),
        }
    }

    /// The next one, until there are no more or it was enough.
    pub fn take(&self) -> Option<u64> {
        if self.over.load(Ordering::Relaxed) {
            return None;
        }
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        (seed < self.end).then_some(seed)
    }

    /// It is enough.
    pub fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether this seed is played twice, as 5 % are.
    #[must_use]
    pub const fn is_played_twice(seed: u64) -> bool {
        seed.is_multiple_of(TWICE)
    }
}
