//! The state machine's time: a count of ticks.

use std::time::Duration;

/// How long a tick is; leases and keepalive periods are counted in ticks.
pub const TICK: Duration = Duration::from_millis(10);

const TICKS_PER_SECOND: u64 = 100;

/// The ticks that have passed in full.
pub(crate) fn full_ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / TICK.as_nanos()).unwrap_or(u64::MAX)
}

/// The ticks of a period, rounded up; at least one, or time would not move.
pub(crate) fn period_in_ticks(period: Duration) -> u64 {
    u64::try_from(period.as_nanos().div_ceil(TICK.as_nanos()))
        .unwrap_or(u64::MAX)
        .max(1)
}

/// The ticks of whole seconds; negative ones count as none.
pub(crate) fn seconds_in_ticks(seconds: i64) -> u64 {
    u64::try_from(seconds)
        .unwrap_or(0)
        .saturating_mul(TICKS_PER_SECOND)
}

/// The whole seconds in so many ticks, the rest cut off.
pub(crate) fn whole_seconds(ticks: u64) -> i64 {
    i64::try_from(ticks / TICKS_PER_SECOND).unwrap_or(i64::MAX)
}

/// How long after the first tick this one is.
pub(crate) fn since_first_tick(tick: u64) -> Duration {
    Duration::from_secs(tick / TICKS_PER_SECOND)
        + Duration::from_millis(tick % TICKS_PER_SECOND * 1000 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_hundred_ticks() {
        assert_eq!(TICK.as_millis() * u128::from(TICKS_PER_SECOND), 1000);
        assert_eq!(since_first_tick(123), Duration::from_millis(1230));
        assert_eq!(full_ticks(Duration::from_millis(1239)), 123);
    }

    #[test]
    fn periods_are_rounded_up_and_never_nothing() {
        assert_eq!(period_in_ticks(Duration::from_millis(11)), 2);
        assert_eq!(period_in_ticks(Duration::ZERO), 1);
    }
}
