use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::token::FencingToken;

/// What a store operation answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a store operation has no outcome, and whether it may have taken effect all the same.
///
/// Contention for a key, and expiry, are outcomes and never errors. Whoever makes an error decides
/// its kind and its effect; callers act on these two and show the rest to people. `Display` does
/// not repeat the [source](std::error::Error::source).
///
/// # Examples
///
/// ```
/// use lock_spi::{Effect, Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Unavailable, Effect::Unknown, "no answer within 1 s");
/// assert_eq!(error.kind(), ErrorKind::Unavailable);
/// assert!(error.is_retryable());
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    effect: Effect,
    message: Cow<'static, str>,
    floor: Option<FloorViolation>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What went wrong, as far as the caller's next step depends on it.
///
/// | kind | the caller |
/// |---|---|
/// | `Unavailable`, `NotLeader` | tries again with back-off |
/// | `SessionGone` | opens a new session |
/// | `FloorViolated` | stops, and a person recovers the store |
/// | `InvalidRequest` | mends the call |
/// | `Denied` | mends the configuration |
/// | `Exhausted` | makes room |
/// | `Incompatible` | migrates |
/// | `Protocol` | reports it |
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Authentication or authorisation failed.
    Denied,
    /// The store is full, over quota, or its counter is at its end.
    Exhausted,
    /// A grant would have been at or below the key's token floor; nothing was handed out and
    /// nothing is held. [`Error::floor_violation`] has both numbers.
    FloorViolated,
    /// A schema, format or server version that this build does not speak.
    Incompatible,
    /// Refused before anything happened.
    InvalidRequest,
    /// The store answers but cannot lead: no etcd leader, a standby.
    NotLeader,
    /// An answer that makes no sense.
    Protocol,
    /// The named session does not exist.
    SessionGone,
    /// Transient: unreachable, timed out, deadlock, pool exhausted, throttled.
    #[doc(alias = "Contention")]
    Unavailable,
}

/// Whether the request may have taken hold.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Effect {
    /// Provably nothing happened.
    None,
    /// It may have happened, or may happen yet.
    Unknown,
}

/// A token that would have been handed out at or below its key's floor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FloorViolation {
    /// What the store minted.
    pub token: FencingToken,
    /// The key's floor, or the highest token known of the store.
    pub floor: FencingToken,
}

impl Error {
    /// Makes an error; there is no default effect, its author decides.
    pub fn new(kind: ErrorKind, effect: Effect, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self(Box::new(Inner {
            kind,
            effect,
            message,
            floor: None,
            source: None,
        }))
    }

    /// Makes the error of a grant that would have broken the token order.
    pub fn floor_violated(
        violation: FloorViolation,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut error = Self::new(ErrorKind::FloorViolated, Effect::None, message);
        error.0.floor = Some(violation);
        error
    }

    /// Adds what caused it.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error with another effect, for a caller who knows more of what was sent.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.0.effect = effect;
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the request may have taken hold.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// Token and floor of a [`ErrorKind::FloorViolated`].
    #[must_use]
    pub fn floor_violation(&self) -> Option<FloorViolation> {
        self.0.floor
    }

    /// Whether the same request may succeed later without anybody mending anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::NotLeader | ErrorKind::Unavailable)
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
            Self::NotLeader => "not leader",
            Self::Protocol => "protocol",
            Self::SessionGone => "session gone",
            Self::Unavailable => "unavailable",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        if let Some(FloorViolation { token, floor }) = self.0.floor {
            write!(f, " (token {token}, floor {floor})")?;
        }
        match self.0.effect {
            Effect::None => Ok(()),
            Effect::Unknown => f.write_str(" (it may have taken effect)"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            kind,
            effect,
            message,
            floor,
            source,
        } = &*self.0;
        let mut report = f.debug_struct("Error");
        report
            .field("kind", kind)
            .field("effect", effect)
            .field("message", message);
        if let Some(floor) = floor {
            report.field("floor", floor);
        }
        if let Some(source) = source {
            report.field("source", source);
        }
        report.finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::new(ErrorKind::InvalidRequest, Effect::None, invalid.to_string())
    }
}

/// A value that was refused when it was made; it names the value and the rule.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what} {found} {rule}")]
pub struct Invalid {
    what: &'static str,
    found: String,
    rule: Rule,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Rule {
    #[error("has a control character at byte {at}")]
    ControlCharacter { at: usize },
    #[error("is empty")]
    Empty,
    #[error("is not one: lower-case hexadecimal digits in full length, and positive")]
    Id,
    #[error("is not one: 1 to 64 of [a-z0-9._-], and neither . nor ..")]
    Namespace,
    #[error("is not one: a session's id is positive")]
    NotPositive,
    #[error("is not one: tokens are 1 to 2^63 - 1, in decimal digits")]
    Token,
    #[error("is longer than {max} bytes")]
    TooLong { max: usize },
    #[error("is out of range: 1 s to 24 h")]
    Ttl,
}

impl Invalid {
    pub(crate) fn new(what: &'static str, found: impl AsRef<str>, rule: Rule) -> Self {
        const SHOWN: usize = 64;
        let found = found.as_ref();
        let found = match found.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{:?}…", &found[..end]),
            None => format!("{found:?}"),
        };
        Self { what, found, rule }
    }

    pub(crate) fn id(what: &'static str, found: &str) -> Self {
        Self::new(what, found, Rule::Id)
    }

    pub(crate) fn session(id: i64) -> Self {
        Self {
            what: "session id",
            found: id.to_string(),
            rule: Rule::NotPositive,
        }
    }

    pub(crate) fn token(found: impl AsRef<str>) -> Self {
        Self::new("fencing token", found, Rule::Token)
    }

    pub(crate) fn ttl(found: Duration) -> Self {
        Self {
            what: "ttl",
            found: format!("{found:?}"),
            rule: Rule::Ttl,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_kind_and_effect_and_not_the_source() {
        let error = Error::new(ErrorKind::Unavailable, Effect::Unknown, "no answer")
            .with_source(std::io::Error::other("cause"));
        assert_eq!(
            error.to_string(),
            "unavailable: no answer (it may have taken effect)"
        );
        let source = std::error::Error::source(&error).unwrap();
        assert_eq!(source.to_string(), "cause");
    }

    #[test]
    fn one_word_keeps_results_small() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn only_what_passes_by_itself_is_retryable() {
        for kind in [
            ErrorKind::Denied,
            ErrorKind::Exhausted,
            ErrorKind::FloorViolated,
            ErrorKind::Incompatible,
            ErrorKind::InvalidRequest,
            ErrorKind::Protocol,
            ErrorKind::SessionGone,
        ] {
            assert!(!Error::new(kind, Effect::None, "").is_retryable(), "{kind}");
        }
        for kind in [ErrorKind::NotLeader, ErrorKind::Unavailable] {
            assert!(
                Error::new(kind, Effect::Unknown, "").is_retryable(),
                "{kind}"
            );
        }
    }
}
