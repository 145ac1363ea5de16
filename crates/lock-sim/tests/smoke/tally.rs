use std::ops::AddAssign;

/// What happened in a run, so that a run in which nothing happens does not pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Guards that callers got.
    pub(crate) granted: u64,
    /// Calls for a lock that was held, or not free in time.
    pub(crate) held: u64,
    /// Calls for a lock that failed.
    pub(crate) failed: u64,
    /// Calls for a lock that were dropped by their caller.
    pub(crate) cancelled: u64,
    /// Guards lost.
    pub(crate) lost: u64,
    /// Guards lost for a reason that is definite.
    pub(crate) lost_definitely: u64,
    /// Writes that the resource took.
    pub(crate) written: u64,
    /// Writes that it refused.
    pub(crate) refused: u64,
    /// Locks that the store had, whether or not anybody learnt of them.
    pub(crate) committed: u64,
}

impl Tally {
    pub(crate) fn assert_that_enough_happened(self) {
        assert!(self.granted > 10_000, "{self:?}");
        assert!(self.held > 5_000, "{self:?}");
        assert!(self.failed > 100, "{self:?}");
        assert!(self.cancelled > 1_000, "{self:?}");
        assert!(self.lost > 100, "{self:?}");
        assert!(self.lost_definitely > 100, "{self:?}");
        assert!(self.written > 10_000, "{self:?}");
        assert!(self.refused > 10, "{self:?}");
        assert!(self.committed >= self.granted, "{self:?}");
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let Self {
            granted,
            held,
            failed,
            cancelled,
            lost,
            lost_definitely,
            written,
            refused,
            committed,
        } = other;
        self.granted += granted;
        self.held += held;
        self.failed += failed;
        self.cancelled += cancelled;
        self.lost += lost;
        self.lost_definitely += lost_definitely;
        self.written += written;
        self.refused += refused;
        self.committed += committed;
    }
}
