use std::time::Duration;

use fencelock::spi::Ttl;

/// How long the command may go on when no renewal comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Limits {
    /// From the request to end to the killing.
    pub(super) grace: Duration,
    /// What the killing may take, before the deadline of the lock.
    pub(super) reserve: Duration,
    /// How often the supervisor is told of the deadline.
    pub(super) beat: Duration,
}

impl Limits {
    /// Grace unless said otherwise, where the ttl allows it.
    const USUAL_GRACE: Duration = Duration::from_secs(5);

    /// The limits under this ttl, and the most grace that it allows where that is less than asked for.
    ///
    /// A renewal is due after a third of the ttl. With more grace than a quarter of it, too little
    /// time would be left to try again before the command is asked to end.
    pub(super) fn new(ttl: Ttl, grace: Option<Duration>) -> (Self, Option<Duration>) {
        let ttl = ttl.as_duration();
        let most = ttl / 4;
        let capped = grace.is_some_and(|grace| grace > most).then_some(most);
        let limits = Self {
            grace: grace.unwrap_or(Self::USUAL_GRACE).min(most),
            reserve: (ttl / 20).clamp(Duration::from_millis(100), Duration::from_millis(500)),
            beat: (ttl / 30).min(Duration::from_millis(250)),
        };
        (limits, capped)
    }

    /// How much must be left when the command is asked to end.
    pub(super) fn notice(&self) -> Duration {
        self.grace + self.reserve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The margin that the client leaves before the store can grant anew, and its renewal period.
    #[test]
    fn under_every_ttl_a_late_renewal_comes_before_the_notice() {
        for seconds in [1, 2, 3, 5, 15, 60, 3600, 86_400] {
            let ttl = Ttl::from_secs(seconds).unwrap();
            let (limits, _) = Limits::new(ttl, Some(Duration::MAX));
            let whole = ttl.as_duration();
            let deadline = whole - (whole / 10).max(Duration::from_millis(200));
            let due = whole / 3;
            assert!(due + whole / 10 < deadline - limits.notice(), "{ttl}");
            assert!(limits.beat < limits.reserve, "{ttl}");
        }
    }

    #[test]
    fn more_grace_than_the_ttl_allows_is_capped_and_told() {
        let ttl = Ttl::from_secs(20).unwrap();
        let second = Duration::from_secs(1);
        assert_eq!(Limits::new(ttl, None).0.grace, 5 * second);
        let (limits, capped) = Limits::new(ttl, Some(6 * second));
        assert_eq!((limits.grace, capped), (5 * second, Some(5 * second)));
        let (limits, capped) = Limits::new(ttl, Some(2 * second));
        assert_eq!((limits.grace, capped), (2 * second, None));
        assert_eq!(
            Limits::new(ttl, Some(Duration::ZERO)).0.grace,
            Duration::ZERO
        );
    }
}
