use std::time::Duration;

/// What a run may take for given about time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// By how many parts per million a client's clock may go wrong for its belief to be judged.
    pub clock_rate: u64,
    /// How long a waiter waits at most once faults are healed.
    pub hand_over: Duration,
    /// How long before its session's end a client stops believing in its grants.
    pub margin: Duration,
    /// For how long a lock must have been free before a head that does not come may be passed.
    pub skip_after: Duration,
}
