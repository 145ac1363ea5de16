//! When a lease is ended whose time is over.

use crate::options::Expiry;

/// Ticks from one look for such leases to the next.
const SCAN_PERIOD: u64 = 50;
/// The most leases that are ended in one look.
const MOST_PER_SCAN: usize = 500;

/// Says when to look for leases whose time is over, and how many to end then.
#[derive(Debug)]
pub(crate) struct Expirer {
    expiry: Expiry,
    last_scan: u64,
}

impl Expirer {
    /// Begins now; at this tick nothing is ended any more.
    pub(crate) const fn new(expiry: Expiry, now: u64) -> Self {
        Self {
            expiry,
            last_scan: now,
        }
    }

    /// The tick at which a lease of this deadline is ended, if there are not too many of them.
    pub(crate) fn due(&self, deadline: u64) -> u64 {
        match self.expiry {
            Expiry::Exact => deadline,
            Expiry::Scanned => deadline
                .max(self.last_scan.saturating_add(1))
                .checked_next_multiple_of(SCAN_PERIOD)
                .unwrap_or(u64::MAX),
        }
    }

    /// How many leases are to be ended at this tick, however often it is asked in it.
    pub(crate) const fn scan(&mut self, now: u64) -> usize {
        match self.expiry {
            Expiry::Exact => usize::MAX,
            Expiry::Scanned if now > self.last_scan && now.is_multiple_of(SCAN_PERIOD) => {
                self.last_scan = now;
                MOST_PER_SCAN
            }
            Expiry::Scanned => 0,
        }
    }

    /// Whether leases stand on when their time is over.
    pub(crate) const fn is_late(&self) -> bool {
        matches!(self.expiry, Expiry::Scanned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_scan_leases_end_at_their_deadlines_all_of_them() {
        let mut exact = Expirer::new(Expiry::Exact, 0);
        assert_eq!(exact.due(123), 123);
        assert_eq!((exact.scan(123), exact.scan(123)), (usize::MAX, usize::MAX));
    }

    #[test]
    fn a_scan_comes_every_half_second_and_once() {
        let mut scanned = Expirer::new(Expiry::Scanned, 0);
        assert_eq!((scanned.due(101), scanned.due(150)), (150, 150));
        assert_eq!((scanned.scan(149), scanned.scan(150)), (0, MOST_PER_SCAN));
        assert_eq!((scanned.scan(150), scanned.due(101)), (0, 200));
        assert_eq!(scanned.due(u64::MAX), u64::MAX);
    }
}
