use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{FencingToken, SessionId};

/// Numbers the calls of a run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallId(pub u64);

/// What a client is asked to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Asks {
    /// For the lock, and to wait for it.
    Acquire {
        /// The lock.
        key: Arc<str>,
    },
    /// To take over a grant that another process gave away.
    Adopt {
        /// The lock.
        key: Arc<str>,
        /// The grant's.
        token: FencingToken,
    },
    /// That a lock be held for some time more.
    Ensure {
        /// The lock.
        key: Arc<str>,
        /// The grant's.
        token: FencingToken,
    },
    /// To give a lock back; also when a guard is dropped, which has no answer.
    Release {
        /// The lock.
        key: Arc<str>,
        /// The grant's.
        token: FencingToken,
    },
    /// Of its store: to keep a session alive.
    Renew {
        /// Whose lease it is.
        session: SessionId,
    },
    /// For the lock, if it is free.
    Try {
        /// The lock.
        key: Arc<str>,
    },
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// There was nothing left to release.
    AlreadyGone,
    /// The caller dropped it: no answer was heard, and the wish is withdrawn.
    Cancelled,
    /// It failed, which says nothing about the lock.
    Failed,
    /// The caller has the lock.
    Granted(FencingToken),
    /// Somebody else has the lock, or did until the waiting was over.
    Held,
    /// The store says that the session or the grant does not exist any more.
    Gone,
    /// This call ended the grant.
    Released,
    /// The store says that it stands, and for how long.
    Renewed(Duration),
}

impl Asks {
    /// The lock that it is about.
    #[must_use]
    pub const fn key(&self) -> Option<&Arc<str>> {
        match self {
            Self::Acquire { key }
            | Self::Adopt { key, .. }
            | Self::Ensure { key, .. }
            | Self::Release { key, .. }
            | Self::Try { key } => Some(key),
            Self::Renew { .. } => None,
        }
    }

    /// The grant that it is about.
    #[must_use]
    pub const fn token(&self) -> Option<FencingToken> {
        match self {
            Self::Adopt { token, .. }
            | Self::Ensure { token, .. }
            | Self::Release { token, .. } => Some(*token),
            Self::Acquire { .. } | Self::Renew { .. } | Self::Try { .. } => None,
        }
    }

    /// Whether it may make a grant.
    #[must_use]
    pub const fn wishes(&self) -> bool {
        matches!(self, Self::Acquire { .. } | Self::Try { .. })
    }
}

impl fmt::Display for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire { key } => write!(f, "acquires {key:?}"),
            Self::Adopt { key, token } => write!(f, "adopts {key:?} with token {token}"),
            Self::Ensure { key, token } => write!(f, "ensures {key:?} with token {token}"),
            Self::Release { key, token } => write!(f, "releases {key:?} with token {token}"),
            Self::Renew { session } => write!(f, "renews session {session}"),
            Self::Try { key } => write!(f, "tries {key:?}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyGone => f.write_str("it was gone already"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Failed => f.write_str("failed"),
            Self::Granted(token) => write!(f, "granted with token {token}"),
            Self::Held => f.write_str("held by somebody else"),
            Self::Gone => f.write_str("gone"),
            Self::Released => f.write_str("released"),
            Self::Renewed(left) => write!(f, "renewed for {:.3} s", left.as_secs_f64()),
        }
    }
}
