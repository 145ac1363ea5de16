use std::time::Duration;

use lock_spi::Ttl;

use crate::error::{Error, Result};

/// No call to a store is waited for longer than this, however long its session lives.
const LONGEST_CALL: Duration = Duration::from_secs(5);
/// The least margin between a guard's deadline and its session's.
const LEAST_MARGIN: Duration = Duration::from_millis(200);

/// When the sessions of one ttl are renewed, and how long a renewal is believed.
///
/// `ttl > renew_deadline > renew_every > 0`, with the margin between the first two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Timing {
    /// How long a session lives in the store.
    pub(crate) ttl: Ttl,
    /// How long after one renewal was sent the next is sent.
    pub(crate) renew_every: Duration,
    /// How long after a confirmed renewal was sent its guards are believed in.
    pub(crate) renew_deadline: Duration,
}

impl Timing {
    /// The usual timing: renewed every third of the ttl, believed up to the margin.
    pub(crate) fn of(ttl: Ttl) -> Self {
        Self {
            ttl,
            renew_every: ttl.as_duration() / 3,
            renew_deadline: ttl.as_duration() - least_margin(ttl),
        }
    }

    /// A timing of the caller's choice; what is not chosen is as usual.
    pub(crate) fn new(
        ttl: Ttl,
        renew_every: Option<Duration>,
        renew_deadline: Option<Duration>,
    ) -> Result<Self> {
        let usual = Self::of(ttl);
        let timing = Self {
            ttl,
            renew_every: renew_every.unwrap_or(usual.renew_every),
            renew_deadline: renew_deadline.unwrap_or(usual.renew_deadline),
        };
        timing.check()?;
        Ok(timing)
    }

    fn check(&self) -> Result<()> {
        let Self {
            ttl,
            renew_every,
            renew_deadline,
        } = *self;
        if renew_every.is_zero() {
            return Err(Error::invalid("renew period 0 s is not above 0"));
        }
        if renew_deadline <= renew_every {
            return Err(Error::invalid(format!(
                "renew deadline {renew_deadline:?} is not above the renew period {renew_every:?}"
            )));
        }
        if renew_deadline >= ttl.as_duration() {
            return Err(Error::invalid(format!(
                "ttl {ttl} is not above the renew deadline {renew_deadline:?}"
            )));
        }
        let margin = least_margin(ttl);
        if self.margin() < margin {
            return Err(Error::invalid(format!(
                "renew deadline {renew_deadline:?} leaves less than the margin {margin:?} of ttl {ttl}"
            )));
        }
        Ok(())
    }

    /// How long before its session's a guard's deadline is.
    pub(crate) fn margin(&self) -> Duration {
        self.ttl.as_duration().saturating_sub(self.renew_deadline)
    }

    /// How long after a confirmed renewal was sent the lack of another is alarming: half-way
    /// between the moment when one was due and the end.
    pub(crate) fn overdue_after(&self) -> Duration {
        (self.renew_every + self.renew_deadline) / 2
    }

    /// How long the answer to a renewal is waited for: then the next is due.
    pub(crate) fn renewal_limit(&self) -> Duration {
        self.renew_every.min(LONGEST_CALL)
    }

    /// How long any other answer of the store is waited for.
    pub(crate) fn call_limit(&self) -> Duration {
        self.renew_deadline.min(LONGEST_CALL)
    }

    /// The first pause after a renewal failed: short, because what is left is short.
    pub(crate) fn first_pause(&self) -> Duration {
        self.renew_every / 20
    }
}

/// The larger of a tenth of the ttl and 200 ms: for clocks that do not run quite alike, and for what
/// is on its way to a resource when the deadline comes.
fn least_margin(ttl: Ttl) -> Duration {
    (ttl.as_duration() / 10).max(LEAST_MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_usual_timing_of_every_ttl_is_sound() {
        for ttl in [Ttl::MIN, Ttl::DEFAULT, Ttl::MAX] {
            assert!(Timing::of(ttl).check().is_ok(), "{ttl}");
        }
        let timing = Timing::of(Ttl::MIN);
        assert_eq!(timing.margin(), Duration::from_millis(200));
        assert_eq!(
            Timing::of(Ttl::DEFAULT).margin(),
            Duration::from_millis(1500)
        );
    }

    /// B124: a renew period that cannot work is refused, and the error names the constraint.
    #[test]
    fn a_broken_constraint_is_named() {
        let ttl = Ttl::DEFAULT;
        let table = [
            (Some(Duration::ZERO), None, "not above 0"),
            (Some(seconds(15)), None, "not above the renew period 15s"),
            (Some(seconds(16)), None, "not above the renew period 16s"),
            (Some(seconds(30)), None, "not above the renew period 30s"),
            (
                Some(seconds(5)),
                Some(seconds(5)),
                "not above the renew period",
            ),
            (
                None,
                Some(seconds(15)),
                "ttl 15s is not above the renew deadline",
            ),
            (None, Some(seconds(14)), "less than the margin 1.5s"),
            (Some(Duration::MAX), Some(Duration::MAX), "not above"),
        ];
        for (every, deadline, rule) in table {
            let refused = Timing::new(ttl, every, deadline).unwrap_err().to_string();
            assert!(refused.contains(rule), "{refused}");
        }
    }
}
