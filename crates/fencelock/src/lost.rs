use std::fmt;

use lock_spi::{FencingToken, LockKey, Owner, Reason};

/// A lock that is no longer held, and why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("lock {key} with token {token} is lost: {reason}")]
pub struct Lost {
    /// What was locked.
    pub key: LockKey,
    /// The token of the grant that is over.
    pub token: FencingToken,
    /// How it ended.
    pub reason: LostReason,
}

/// How a lock came to be lost.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LostReason {
    /// A guard without renewal reached the end of its time.
    Expired,
    /// The deadline passed while nobody tried to renew: the process was suspended, or its executor
    /// was too busy to run the renewal.
    Overslept,
    /// The guard was turned into a [`Grant`](crate::Grant) for another process; only a
    /// [`Held`](crate::Held) that outlives it sees this.
    HandedOver,
    /// The guard was released or dropped; only a [`Held`](crate::Held) that outlives it sees this.
    Released,
    /// An administrator ended the grant.
    Revoked {
        /// Who.
        by: Owner,
        /// Why.
        reason: Reason,
    },
    /// The grant ended with its session, or was removed behind the client: the store has it no
    /// more, or the client was shut down or dropped.
    SessionClosed,
    /// Renewals failed, or were not answered, until the deadline.
    Unreachable,
}

impl LostReason {
    /// Whether the grant is known to be over.
    ///
    /// When it is not, the store may keep it a little longer: the client only ceased to believe in
    /// it.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        match self {
            Self::HandedOver | Self::Released | Self::Revoked { .. } | Self::SessionClosed => true,
            Self::Expired | Self::Overslept | Self::Unreachable => false,
        }
    }

    /// The tag in metrics and events.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::HandedOver => "handed_over",
            Self::Overslept => "overslept",
            Self::Released => "released",
            Self::Revoked { .. } => "revoked",
            Self::SessionClosed => "session_closed",
            Self::Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("its time is over"),
            Self::HandedOver => f.write_str("it was handed over"),
            Self::Overslept => f.write_str("the process did not run in time to renew it"),
            Self::Released => f.write_str("it was released"),
            Self::Revoked { by, reason } => write!(f, "revoked by {by:?}: {reason}"),
            Self::SessionClosed => f.write_str("its session is closed"),
            Self::Unreachable => f.write_str("the store did not confirm a renewal in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_store_or_the_client_ended_is_definite() {
        let revoked = LostReason::Revoked {
            by: Owner::new("alice").unwrap(),
            reason: Reason::new("stuck").unwrap(),
        };
        for definite in [
            revoked,
            LostReason::HandedOver,
            LostReason::SessionClosed,
            LostReason::Released,
        ] {
            assert!(definite.is_definite(), "{definite}");
        }
        for open in [
            LostReason::Expired,
            LostReason::Overslept,
            LostReason::Unreachable,
        ] {
            assert!(!open.is_definite(), "{open}");
        }
    }
}
