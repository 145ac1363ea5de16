use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use lock_spi::{Effect, Holder, Invalid};

use crate::lost::{Lost, LostReason};

/// What operations of this crate answer.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation has no answer, and whether it may have taken effect all the same.
///
/// Act on [`kind`](Self::kind) and show the rest to people. That someone else holds a lock is an
/// answer of [`try_acquire`](crate::Client::try_acquire), and no error.
///
/// # Examples
///
/// ```
/// use fencelock::{Error, ErrorKind};
/// use fencelock::spi::LockKey;
///
/// let refused: Error = LockKey::new("").unwrap_err().into();
/// assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
/// assert!(!refused.is_retryable());
/// ```
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    effect: Effect,
    message: Cow<'static, str>,
    holder: Option<Holder>,
    lost: Option<LostReason>,
    /// The store's own error: what this one stands for when the message is empty, else its source.
    store: Option<Arc<lock_spi::Error>>,
}

/// What went wrong, as far as the caller's next step depends on it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Authentication or authorisation failed.
    Denied,
    /// The store is full, over quota, or its counter is at its end.
    Exhausted,
    /// The store would have handed out a token at or below the key's floor; nothing is held.
    FloorViolated,
    /// A schema, format or server version that this build does not speak.
    Incompatible,
    /// Refused before anything happened.
    InvalidRequest,
    /// The lock was held and is lost.
    Lost,
    /// The store answers but cannot lead.
    NotLeader,
    /// An answer that makes no sense.
    Protocol,
    /// The client was shut down.
    ShuttingDown,
    /// The lock was not granted within the time that the caller would wait.
    TimedOut,
    /// The store did not answer, or not in time.
    Unavailable,
}

impl Error {
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidRequest, Effect::None, message)
    }

    pub(crate) fn shutting_down() -> Self {
        let message = "the client was shut down";
        Self::new(ErrorKind::ShuttingDown, Effect::None, message)
    }

    pub(crate) fn unavailable(effect: Effect, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unavailable, effect, message)
    }

    /// The time is over; `last` is what the last try met instead of an answer.
    pub(crate) fn timed_out(
        message: String,
        effect: Effect,
        holder: Option<Holder>,
        last: Option<Self>,
    ) -> Self {
        let mut error = Self::new(ErrorKind::TimedOut, effect, message);
        error.0.holder = holder;
        error.0.store = last.and_then(|last| last.0.store);
        error
    }

    fn new(kind: ErrorKind, effect: Effect, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            effect,
            message: message.into(),
            holder: None,
            lost: None,
            store: None,
        }))
    }

    /// The same error for another of those who wait for one thing.
    pub(crate) fn share(&self) -> Self {
        Self(self.0.clone())
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the request may have taken hold in spite of the error.
    ///
    /// What the client began and did not finish it undoes by itself, at the latest with its session.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// Who held the lock when it was last looked at; of [`ErrorKind::TimedOut`].
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        self.0.holder.as_ref()
    }

    /// How the lock was lost; of [`ErrorKind::Lost`].
    #[must_use]
    pub fn lost(&self) -> Option<&LostReason> {
        self.0.lost.as_ref()
    }

    /// Whether the same call may succeed later without anybody mending anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::NotLeader | ErrorKind::TimedOut | ErrorKind::Unavailable
        )
    }
}

impl From<lock_spi::Error> for Error {
    fn from(error: lock_spi::Error) -> Self {
        let kind = match error.kind() {
            lock_spi::ErrorKind::Denied => ErrorKind::Denied,
            lock_spi::ErrorKind::Exhausted => ErrorKind::Exhausted,
            lock_spi::ErrorKind::FloorViolated => ErrorKind::FloorViolated,
            lock_spi::ErrorKind::Incompatible => ErrorKind::Incompatible,
            lock_spi::ErrorKind::InvalidRequest => ErrorKind::InvalidRequest,
            lock_spi::ErrorKind::NotLeader => ErrorKind::NotLeader,
            // The client opens another session, so for its callers this passes.
            lock_spi::ErrorKind::SessionGone | lock_spi::ErrorKind::Unavailable => {
                ErrorKind::Unavailable
            }
            // A kind that this build does not know makes no sense to it.
            _ => ErrorKind::Protocol,
        };
        let mut own = Self::new(kind, error.effect(), "");
        own.0.store = Some(Arc::new(error));
        own
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid.to_string())
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        let mut error = Self::new(ErrorKind::Lost, Effect::None, lost.to_string());
        error.0.lost = Some(lost.reason);
        error
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "denied",
            Self::Exhausted => "exhausted",
            Self::FloorViolated => "token floor violated",
            Self::Incompatible => "incompatible",
            Self::InvalidRequest => "invalid request",
            Self::Lost => "lost",
            Self::NotLeader => "not leader",
            Self::Protocol => "protocol",
            Self::ShuttingDown => "shutting down",
            Self::TimedOut => "timed out",
            Self::Unavailable => "unavailable",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.store {
            Some(store) if self.0.message.is_empty() => store.fmt(f),
            _ => write!(f, "{}: {}", self.0.kind, self.0.message),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            kind,
            effect,
            message,
            holder,
            lost,
            store,
        } = &*self.0;
        let mut report = f.debug_struct("Error");
        report.field("kind", kind).field("effect", effect);
        if !message.is_empty() {
            report.field("message", message);
        }
        if let Some(holder) = holder {
            report.field("holder", holder);
        }
        if let Some(lost) = lost {
            report.field("lost", lost);
        }
        if let Some(store) = store {
            report.field("store", store);
        }
        report.finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let store = self.0.store.as_deref()?;
        if self.0.message.is_empty() {
            // This error reads as the store's; its source is the store's source.
            store.source()
        } else {
            Some(store)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn a_store_error_reads_as_itself_and_is_told_once() {
        let cause = std::io::Error::other("connection reset");
        let store = lock_spi::Error::new(
            lock_spi::ErrorKind::Unavailable,
            Effect::Unknown,
            "no answer",
        )
        .with_source(cause);
        let text = store.to_string();
        let error = Error::from(store);
        assert_eq!(error.to_string(), text);
        assert_eq!(error.source().unwrap().to_string(), "connection reset");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.effect(), Effect::Unknown);
    }

    #[test]
    fn a_timeout_has_the_last_store_error_as_its_source() {
        let store = lock_spi::Error::new(lock_spi::ErrorKind::NotLeader, Effect::None, "standby");
        let error = Error::timed_out("k".into(), Effect::None, None, Some(store.into()));
        assert_eq!(error.to_string(), "timed out: k");
        assert_eq!(error.source().unwrap().to_string(), "not leader: standby");
    }

    #[test]
    fn every_store_kind_has_its_own_kind_here() {
        let table = [
            (lock_spi::ErrorKind::Denied, ErrorKind::Denied),
            (lock_spi::ErrorKind::Exhausted, ErrorKind::Exhausted),
            (lock_spi::ErrorKind::FloorViolated, ErrorKind::FloorViolated),
            (lock_spi::ErrorKind::Incompatible, ErrorKind::Incompatible),
            (
                lock_spi::ErrorKind::InvalidRequest,
                ErrorKind::InvalidRequest,
            ),
            (lock_spi::ErrorKind::NotLeader, ErrorKind::NotLeader),
            (lock_spi::ErrorKind::Protocol, ErrorKind::Protocol),
            (lock_spi::ErrorKind::SessionGone, ErrorKind::Unavailable),
            (lock_spi::ErrorKind::Unavailable, ErrorKind::Unavailable),
        ];
        for (store, own) in table {
            let error = Error::from(lock_spi::Error::new(store, Effect::None, "x"));
            assert_eq!(error.kind(), own);
        }
    }
}
