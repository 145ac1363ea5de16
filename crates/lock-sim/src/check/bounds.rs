use std::time::Duration;

/// What a run may take for given about time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// How long a waiter waits at most once faults are healed.
    pub hand_over: Duration,
    /// How long after a confirmed renewal what is not accounted for may stand.
    pub ghosts: Duration,
    /// The ttl of every session.
    pub ttl: Duration,
    /// By how many parts per million a client's clock may go wrong for its belief to be judged.
    pub clock_rate: i64,
}
