use std::fmt::Debug;
use std::time::Duration;

use lock_spi::Runtime;

/// How long those who wait for a lock pause after the store failed to answer them.
///
/// Give another than the default to
/// [`ClientBuilder::backoff`](crate::ClientBuilder::backoff). It has no part in renewing and
/// releasing, whose pauses depend on what is left of the session.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use fencelock::Backoff;
///
/// /// Always the same pause.
/// #[derive(Debug)]
/// struct Steady(Duration);
///
/// impl Backoff for Steady {
///     fn pause(&self, _failures: u32, _random: u64) -> Duration {
///         self.0
///     }
/// }
/// ```
pub trait Backoff: Debug + Send + Sync + 'static {
    /// The pause after so many failures in a row, at least one. `random` is 64 random bits, so that
    /// many who failed together do not knock in step.
    fn pause(&self, failures: u32, random: u64) -> Duration;
}

/// Pauses that double up to the longest: each between half of its nominal length and all of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExponentialBackoff {
    /// The nominal length of the first pause.
    pub first: Duration,
    /// No pause is longer than this.
    pub longest: Duration,
}

impl Default for ExponentialBackoff {
    /// From 50 ms to 2 s.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(50),
            longest: Duration::from_secs(2),
        }
    }
}

impl Backoff for ExponentialBackoff {
    fn pause(&self, failures: u32, random: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let nominal = self.first.saturating_mul(1 << doublings).min(self.longest);
        let half = nominal / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        half + Duration::from_nanos(random.checked_rem(nanos).unwrap_or(0))
    }
}

/// The pauses between tries of one thing.
#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    backoff: ExponentialBackoff,
    failures: u32,
}

impl Pauses {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            backoff: ExponentialBackoff { first, longest },
            failures: 0,
        }
    }

    /// It failed once more; how long to pause.
    pub(crate) fn next(&mut self, runtime: &dyn Runtime) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.backoff.pause(self.failures, runtime.random())
    }

    /// The thing succeeded.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use sim_runtime::World;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_start_over() {
        let world = World::new(1);
        let runtime = world.runtime("node");
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_millis(300));
        for nominal in [100, 200, 300, 300] {
            let nominal = Duration::from_millis(nominal);
            let pause = pauses.next(&*runtime);
            assert!((nominal / 2..=nominal).contains(&pause), "{pause:?}");
        }
        pauses.reset();
        assert!(pauses.next(&*runtime) <= Duration::from_millis(100));
    }

    #[test]
    fn no_number_of_failures_overflows() {
        let backoff = ExponentialBackoff {
            first: Duration::MAX,
            longest: Duration::MAX,
        };
        for failures in [0, 1, 32, u32::MAX] {
            assert!(backoff.pause(failures, u64::MAX) >= Duration::MAX / 2);
        }
        let none = ExponentialBackoff {
            first: Duration::ZERO,
            longest: Duration::ZERO,
        };
        assert_eq!(none.pause(3, 7), Duration::ZERO);
    }
}
