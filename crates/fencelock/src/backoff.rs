use std::time::Duration;

use lock_spi::Runtime;

/// Growing pauses between tries of one thing, with jitter, so that many clients do not knock in
/// step.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        let first = first.min(longest);
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// The next pause: between half of its nominal length and all of it.
    pub(crate) fn pause(&mut self, runtime: &dyn Runtime) -> Duration {
        let nominal = self.next;
        self.next = nominal.saturating_mul(2).min(self.longest);
        nominal / 2 + runtime.jitter(nominal / 2)
    }

    /// The thing succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use lock_sim::World;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_start_over() {
        let world = World::new(1);
        let runtime = world.runtime("node");
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));
        for nominal in [100, 200, 300, 300] {
            let nominal = Duration::from_millis(nominal);
            let pause = backoff.pause(&*runtime);
            assert!((nominal / 2..=nominal).contains(&pause), "{pause:?}");
        }
        backoff.reset();
        assert!(backoff.pause(&*runtime) <= Duration::from_millis(100));
    }
}
