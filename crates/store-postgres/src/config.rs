use std::time::Duration;

use lock_spi::{Namespace, Ttl};

/// How a [`PostgresLockStore`](crate::PostgresLockStore) behaves.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lock_spi::Namespace;
/// use store_postgres::PostgresConfig;
///
/// let config = PostgresConfig::new(Namespace::new("billing")?)
///     .with_request_timeout(Duration::from_millis(500));
/// assert_eq!(config.namespace().as_str(), "billing");
/// # Ok::<(), lock_spi::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PostgresConfig {
    namespace: Namespace,
    periods: Periods,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Periods {
    request_timeout: Duration,
    look_again: Duration,
}

impl Default for Periods {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(1),
            look_again: Duration::from_secs(2),
        }
    }
}

/// How long the first in line may take to come for a free lock; kept in `dlock.meta`.
const CLAIM: Duration = Duration::from_secs(12);

impl PostgresConfig {
    /// The plain behaviour, for the locks of one namespace.
    #[must_use]
    pub fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            periods: Periods::default(),
        }
    }

    /// How long one call may take, with the connection that it needs; 1 s unless set, and never more
    /// than a third of the ttl of the session that it is for. The first, by which a store connects,
    /// may take five times as long.
    #[must_use]
    pub fn with_request_timeout(mut self, limit: Duration) -> Self {
        self.periods.request_timeout = limit;
        self
    }

    /// The longest period after which somebody who waits looks again although nothing was heard; 2 s
    /// unless set.
    #[must_use]
    pub fn with_look_again(mut self, period: Duration) -> Self {
        self.periods.look_again = period;
        self
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The limit of a call that concerns no session.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.periods.request_timeout
    }

    /// The limit of the first call.
    pub(crate) fn limit_to_connect(&self) -> Duration {
        self.periods.request_timeout.saturating_mul(5)
    }

    /// The limit of a call for a session: two of them and a pause fit in its life.
    pub(crate) fn limit_for(&self, ttl: Ttl) -> Duration {
        self.periods.request_timeout.min(ttl.as_duration() / 3)
    }

    pub(crate) fn look_again(&self) -> Duration {
        self.periods.look_again
    }

    /// How long a waiter may wait for a key that nobody keeps: a head that was called and does not
    /// come, and one that expired before it was called.
    pub(crate) fn hand_over_bound(&self) -> Duration {
        CLAIM.saturating_mul(2).max(self.periods.look_again * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_no_more_than_a_third_of_the_ttl() {
        let config = PostgresConfig::default();
        assert_eq!(config.limit_for(Ttl::DEFAULT), Duration::from_secs(1));
        assert_eq!(config.limit_for(Ttl::MIN), Duration::from_secs(1) / 3);
        assert_eq!(config.hand_over_bound(), Duration::from_secs(24));
    }
}
