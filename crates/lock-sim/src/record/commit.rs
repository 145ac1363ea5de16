use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{AttemptId, FencingToken, SessionId};

/// One change of what is true, in the order in which the cluster made it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Commit {
    /// A grant ended.
    Ended {
        /// The lock.
        key: Arc<str>,
        /// The grant's.
        token: FencingToken,
        /// How; [`Entry::lane`](super::Entry::lane) says who.
        cause: EndCause,
    },
    /// No grant of the lock may be at or below this token from now on.
    FloorRaised {
        /// The lock.
        key: Arc<str>,
        /// The floor.
        floor: FencingToken,
    },
    /// A session holds the lock.
    Granted {
        /// The lock.
        key: Arc<str>,
        /// Names the grant for all time.
        token: FencingToken,
        /// Who holds it.
        session: SessionId,
        /// Whose wish was granted.
        attempt: AttemptId,
    },
    /// An attempt's place is gone, other than by its own grant.
    Left {
        /// The lock.
        key: Arc<str>,
        /// Whose place it was.
        attempt: AttemptId,
        /// How; [`Entry::lane`](super::Entry::lane) says who.
        cause: EndCause,
    },
    /// An attempt has taken its place behind those that are there.
    Queued {
        /// The lock.
        key: Arc<str>,
        /// Whose place it is.
        session: SessionId,
        /// Whose wish waits.
        attempt: AttemptId,
    },
    /// The namespace begins anew above everything that was known; nothing of before stands.
    Recovered {
        /// Of all later tokens.
        term: u64,
    },
    /// The data are those of a backup: what was committed after it never happened.
    Restored,
    /// The entry of a lock was written over, which nobody does.
    Rewritten {
        /// The lock.
        key: Arc<str>,
        /// As it is named now.
        token: FencingToken,
    },
    /// A lease is over, and with it what it held.
    SessionEnded {
        /// Which.
        session: SessionId,
        /// How.
        cause: EndCause,
    },
    /// A lease was granted to this client.
    SessionOpened {
        /// Which.
        session: SessionId,
        /// The client's name.
        owner: Arc<str>,
        /// How long it lives without renewal.
        ttl: Duration,
    },
    /// Another client keeps the session from now on.
    SessionTaken {
        /// Which.
        session: SessionId,
    },
    /// A lease now lives until this time of the world, if nothing comes between.
    SessionRenewed {
        /// Which.
        session: SessionId,
        /// Its true deadline.
        until: Duration,
    },
}

/// Why something in the cluster ended.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum EndCause {
    /// Its entry was deleted.
    Deleted,
    /// Its lease ran out.
    Expired,
    /// Its lease was revoked.
    LeaseRevoked,
    /// It is not in the backup that was restored.
    Restored,
    /// It was granted, and needs its place no more.
    Served,
}

impl Commit {
    /// The lock that it is about.
    #[must_use]
    pub const fn key(&self) -> Option<&Arc<str>> {
        match self {
            Self::Ended { key, .. }
            | Self::FloorRaised { key, .. }
            | Self::Granted { key, .. }
            | Self::Left { key, .. }
            | Self::Queued { key, .. }
            | Self::Rewritten { key, .. } => Some(key),
            Self::Recovered { .. }
            | Self::Restored
            | Self::SessionEnded { .. }
            | Self::SessionOpened { .. }
            | Self::SessionRenewed { .. }
            | Self::SessionTaken { .. } => None,
        }
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { key, token, cause } => {
                write!(f, "grant {token} of {key:?} ends: {cause}")
            }
            Self::FloorRaised { key, floor } => write!(f, "floor of {key:?} is {floor}"),
            Self::Granted {
                key,
                token,
                session,
                ..
            } => write!(
                f,
                "{key:?} is granted with token {token} to session {session}"
            ),
            Self::Left { key, cause, .. } => write!(f, "a place for {key:?} is gone: {cause}"),
            Self::Queued { key, session, .. } => {
                write!(f, "session {session} takes a place for {key:?}")
            }
            Self::Recovered { term } => write!(f, "recovered, with term {term}"),
            Self::Restored => f.write_str("restored from a backup"),
            Self::Rewritten { key, token } => write!(f, "{key:?} was written over: {token}"),
            Self::SessionEnded { session, cause } => write!(f, "session {session} ends: {cause}"),
            Self::SessionOpened { session, owner, .. } => {
                write!(f, "session {session} of {owner} begins")
            }
            Self::SessionTaken { session } => write!(f, "session {session} is taken over"),
            Self::SessionRenewed { session, until } => {
                write!(
                    f,
                    "session {session} lives until {:.3} s",
                    until.as_secs_f64()
                )
            }
        }
    }
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deleted => "deleted",
            Self::Expired => "its lease ran out",
            Self::LeaseRevoked => "its lease was revoked",
            Self::Restored => "not in the backup",
            Self::Served => "served",
        })
    }
}
