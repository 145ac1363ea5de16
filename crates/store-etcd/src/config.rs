use std::time::Duration;

use lock_spi::{Namespace, Ttl};

/// How an [`EtcdLockStore`](crate::EtcdLockStore) behaves.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lock_spi::Namespace;
/// use store_etcd::EtcdConfig;
///
/// let config = EtcdConfig::new(Namespace::new("billing")?)
///     .with_request_timeout(Duration::from_millis(500));
/// assert_eq!(config.namespace().as_str(), "billing");
/// # Ok::<(), lock_spi::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EtcdConfig {
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

/// A head of the queue that does not take its turn is never skipped sooner.
const LEAST_SKIP: Duration = Duration::from_secs(12);

impl EtcdConfig {
    /// The plain behaviour, for the locks of one namespace.
    #[must_use]
    pub fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            periods: Periods::default(),
        }
    }

    /// How long one call to etcd may take; 1 s unless set, and never more than a third of the
    /// ttl of the session that it is for. One operation makes several calls.
    #[must_use]
    pub fn with_request_timeout(mut self, limit: Duration) -> Self {
        self.periods.request_timeout = limit;
        self
    }

    /// The longest period after which the clients of this namespace look again when they are next
    /// in line; 2 s unless set. One that misses three in a row can be skipped.
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

    /// The limit of a call for a session: two of them and a pause fit in its life.
    pub(crate) fn limit_for(&self, ttl: Ttl) -> Duration {
        self.periods.request_timeout.min(ttl.as_duration() / 3)
    }

    /// How long each place ahead has to take its turn before it can be skipped.
    pub(crate) fn skip_after(&self) -> Duration {
        let Periods {
            request_timeout,
            look_again,
        } = &self.periods;
        let slow = look_again.saturating_mul(3);
        LEAST_SKIP.max(slow.saturating_add(request_timeout.saturating_mul(2)))
    }

    /// How long a waiter may wait for a key that nobody keeps: one skip, seen twice.
    pub(crate) fn hand_over_bound(&self) -> Duration {
        self.skip_after().saturating_mul(2)
    }
}

/// With less than this left of a session nothing is granted under it.
pub(crate) fn margin(ttl: Duration) -> Duration {
    (ttl / 10).max(Duration::from_millis(200))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_for_a_short_session_is_short() {
        let config = EtcdConfig::default();
        assert_eq!(config.limit_for(Ttl::DEFAULT), Duration::from_secs(1));
        assert_eq!(config.limit_for(Ttl::MIN), Ttl::MIN.as_duration() / 3);
    }

    #[test]
    fn a_head_has_three_looks_and_at_least_twelve_seconds() {
        let config = EtcdConfig::default();
        assert_eq!(config.skip_after(), Duration::from_secs(12));
        let slow = config.with_look_again(Duration::from_secs(5));
        assert_eq!(slow.skip_after(), Duration::from_secs(17));
    }
}
