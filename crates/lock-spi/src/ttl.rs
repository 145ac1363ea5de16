use std::fmt;
use std::time::Duration;

use crate::error::Invalid;

/// How long a session lives after its last confirmed renewal: 1 s to 24 h.
///
/// A store may lengthen it (etcd counts whole seconds and has a minimum of its own), never shorten
/// it; what was granted stands in [`SessionLease`](crate::SessionLease).
///
/// # Examples
///
/// ```
/// use lock_spi::Ttl;
///
/// assert_eq!(Ttl::from_secs(15)?, Ttl::DEFAULT);
/// let refused = Ttl::from_secs(0).unwrap_err();
/// assert!(refused.to_string().contains("1 s to 24 h"));
/// # Ok::<(), lock_spi::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ttl(Duration);

impl Ttl {
    /// The least ttl: 1 s.
    pub const MIN: Self = Self(Duration::from_secs(1));
    /// The greatest ttl: 24 h.
    pub const MAX: Self = Self(Duration::from_secs(24 * 60 * 60));
    /// 15 s.
    pub const DEFAULT: Self = Self(Duration::from_secs(15));

    /// Takes a duration of whole milliseconds between 1 s and 24 h; a fraction of a millisecond
    /// is rounded up.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it is out of range.
    pub fn new(duration: Duration) -> Result<Self, Invalid> {
        if duration < Self::MIN.0 || duration > Self::MAX.0 {
            return Err(Invalid::ttl(duration));
        }
        let whole = Duration::new(duration.as_secs(), 0);
        let milliseconds = duration.subsec_nanos().div_ceil(1_000_000);
        Ok(Self(whole + Duration::from_millis(milliseconds.into())))
    }

    /// A ttl of whole seconds.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it is out of range.
    pub fn from_secs(seconds: u64) -> Result<Self, Invalid> {
        Self::new(Duration::from_secs(seconds))
    }

    /// The ttl as a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        self.0
    }

    /// For stores that count whole seconds: rounded up, so never shorter than asked.
    #[must_use]
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.as_secs() + (self.0.subsec_nanos() > 0) as u64
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = Invalid;

    fn try_from(duration: Duration) -> Result<Self, Invalid> {
        Self::new(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_is_refused_and_named() {
        let refused = [
            Duration::ZERO,
            Duration::from_millis(1),
            Duration::from_millis(999),
            Duration::from_secs(24 * 60 * 60) + Duration::from_nanos(1),
            Duration::from_millis(1 << 50),
            Duration::from_secs(100 * 365 * 24 * 60 * 60),
            Duration::from_millis(u64::MAX),
            Duration::from_secs(i64::MAX.unsigned_abs()),
            Duration::MAX,
        ];
        for duration in refused {
            let error = Ttl::new(duration).unwrap_err().to_string();
            assert!(error.contains(&format!("{duration:?}")), "{error}");
            assert!(error.contains("24 h"), "{error}");
        }
    }

    #[test]
    fn rounding_never_shortens() {
        let ttl = Ttl::new(Duration::from_nanos(1_000_000_001)).unwrap();
        assert_eq!(ttl.as_duration(), Duration::from_millis(1001));
        assert_eq!(ttl.as_secs_ceil(), 2);
        assert_eq!(Ttl::MAX.as_secs_ceil(), 86_400);
        assert_eq!(Ttl::MIN.as_secs_ceil(), 1);
    }
}
