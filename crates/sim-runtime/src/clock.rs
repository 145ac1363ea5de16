//! The clocks of a node, which need not agree with that of the world.

use std::time::Duration;

/// A clock that goes as it should: parts per million that it gains.
const MILLION: i64 = 1_000_000;

/// A node's clocks, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// When the rate was set: on the clock of the world, and on this one.
    since: u64,
    shown_then: u64,
    /// Parts per million by which it is fast; a million less, and it stands still.
    rate: i64,
    /// By how much the wall clock was stepped.
    wall_step: i64,
    /// How often it was tampered with; sleepers count anew then.
    changes: u64,
}

impl Clock {
    /// What it shows when the clock of the world shows `world`.
    pub(crate) fn at(&self, world: u64) -> u64 {
        let passed = world.saturating_sub(self.since);
        if self.rate == 0 {
            return self.shown_then.saturating_add(passed);
        }
        let speed = u128::from((MILLION + self.rate).unsigned_abs());
        let shown = u128::from(passed) * speed / u128::from(MILLION.unsigned_abs());
        let shown = u64::try_from(shown).unwrap_or(u64::MAX);
        self.shown_then.saturating_add(shown)
    }

    /// What the clock of the world shows when this one shows `own`; the end of time if it never does.
    pub(crate) fn when(&self, own: u64) -> u64 {
        let wanted = own.saturating_sub(self.shown_then);
        if self.rate == 0 {
            return self.since.saturating_add(wanted);
        }
        let speed = u128::from((MILLION + self.rate).unsigned_abs());
        let needed = u128::from(wanted) * u128::from(MILLION.unsigned_abs());
        let needed = needed
            .checked_next_multiple_of(speed)
            .and_then(|needed| needed.checked_div(speed))
            .and_then(|needed| u64::try_from(needed).ok());
        needed.map_or(u64::MAX, |needed| self.since.saturating_add(needed))
    }

    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// How far the wall clock is from where it would be.
    pub(crate) fn wall(&self, origin: Duration, own: u64) -> Duration {
        let shown = origin.saturating_add(Duration::from_nanos(own));
        let step = Duration::from_nanos(self.wall_step.unsigned_abs());
        if self.wall_step < 0 {
            shown.saturating_sub(step)
        } else {
            shown.saturating_add(step)
        }
    }

    /// Goes so many parts per million fast from now on; never backwards.
    pub(crate) fn set_rate(&mut self, world: u64, rate: i64) {
        self.shown_then = self.at(world);
        self.since = world;
        self.rate = rate.max(-MILLION);
        self.changes += 1;
    }

    /// Skips some time at once.
    pub(crate) fn jump(&mut self, world: u64, ahead: Duration) {
        let ahead = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        self.set_rate(world, self.rate);
        self.shown_then = self.shown_then.saturating_add(ahead);
    }

    /// Steps the wall clock, back or ahead.
    pub(crate) fn step_wall(&mut self, seconds: i64) {
        let step = seconds.saturating_mul(1_000_000_000);
        self.wall_step = self.wall_step.saturating_add(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_fast_clock_is_ahead_and_its_sleepers_wake_early() {
        let mut clock = Clock::default();
        clock.set_rate(10 * SECOND, 100_000);
        assert_eq!(clock.at(20 * SECOND), 21 * SECOND);
        assert_eq!(clock.when(21 * SECOND), 20 * SECOND);
    }

    #[test]
    fn a_clock_shows_what_was_waited_for_when_it_is_waited_for() {
        for rate in [-999_999, -70_001, -1, 0, 1, 333, 77_777, 4_000_001] {
            let mut clock = Clock::default();
            clock.set_rate(3, rate);
            for own in [3, 4, 1_000_003, 5 * SECOND + 7] {
                assert!(clock.at(clock.when(own)) >= own, "{rate} {own}");
            }
        }
    }

    #[test]
    fn a_clock_that_stands_still_never_gets_there_until_it_goes_again() {
        let mut clock = Clock::default();
        clock.set_rate(SECOND, -1_000_000);
        assert_eq!(clock.at(9 * SECOND), SECOND);
        assert_eq!(clock.when(2 * SECOND), u64::MAX);
        clock.set_rate(9 * SECOND, 0);
        assert_eq!(clock.when(2 * SECOND), 10 * SECOND);
    }

    #[test]
    fn a_wall_clock_steps_by_itself_and_a_jump_moves_both() {
        let mut clock = Clock::default();
        let origin = Duration::from_secs(100);
        clock.step_wall(-40);
        clock.jump(0, Duration::from_secs(5));
        assert_eq!(clock.at(SECOND), 6 * SECOND);
        assert_eq!(clock.wall(origin, 6 * SECOND), Duration::from_secs(66));
    }
}
