use std::borrow::Cow;

/// Why a call has no answer, in the server's terms, and whether it may have been applied.
#[derive(Debug, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct KvError {
    kind: KvErrorKind,
    applied: Applied,
    message: Cow<'static, str>,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What the server said, or that it said nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KvErrorKind {
    /// A read or watch below the compact revision.
    #[error("compacted")]
    Compacted {
        /// The oldest revision that can still be read; 0 where the server does not say.
        compact_revision: i64,
    },
    /// Authentication or authorisation failed.
    #[error("denied")]
    Denied,
    /// A read above the present revision.
    #[error("future revision")]
    FutureRevision,
    /// The server is of a version that must not be used.
    #[error("incompatible")]
    Incompatible,
    /// The request breaks a rule: empty key, duplicate key, too many operations, too large.
    #[error("invalid argument")]
    InvalidArgument,
    /// The chosen lease id is taken.
    #[error("lease already exists")]
    LeaseExists,
    /// The named lease does not exist.
    #[error("lease not found")]
    LeaseNotFound,
    /// The server answers but has no leader.
    #[error("no leader")]
    NoLeader,
    /// The store is full.
    #[error("no space")]
    NoSpace,
    /// An answer that makes no sense.
    #[error("protocol")]
    Protocol,
    /// Unreachable, timed out, throttled.
    #[error("unavailable")]
    Unavailable,
}

/// Whether a failed call may have been applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Applied {
    /// It was not and will not be.
    No,
    /// It may have been, or may be yet.
    Unknown,
}

impl KvError {
    /// Makes an error; whoever makes it decides whether the call may have been applied.
    pub fn new(kind: KvErrorKind, applied: Applied, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            applied,
            message: message.into(),
            source: None,
        }
    }

    /// Adds what caused it.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error, for a caller who knows more of what was sent.
    #[must_use]
    pub fn with_applied(mut self, applied: Applied) -> Self {
        self.applied = applied;
        self
    }

    /// What the server said.
    #[must_use]
    pub fn kind(&self) -> KvErrorKind {
        self.kind
    }

    /// Whether the call may have been applied.
    #[must_use]
    pub fn applied(&self) -> Applied {
        self.applied
    }

    /// The server's words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}
