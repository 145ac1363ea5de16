use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lock_spi::{FencingToken, LockKey, SessionId, Ttl};

use crate::error::Error;
use crate::guard::Guard;

/// A lock on its way from one process to another: made by
/// [`Guard::into_grant`](crate::Guard::into_grant), taken over by
/// [`Client::adopt`](crate::Client::adopt).
///
/// Nobody renews it on its way: unless it is taken over, it ends with its ttl. It says nothing of the
/// store, so both clients must be connected to the same namespace of the same store.
///
/// Its text is one line of the form `fencelock:1:SESSION:TOKEN:TTL:KEY`, for a pipe, a message or a
/// variable of the environment. Whoever has it can take the lock over; treat it as a secret among
/// those who have access to the store.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "nobody renews it before it is taken over"]
pub struct Grant {
    pub(crate) key: LockKey,
    pub(crate) token: FencingToken,
    pub(crate) session: SessionId,
    pub(crate) ttl: Ttl,
}

impl Grant {
    /// What is locked.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// The token, which stays the same.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// How long it lives without being taken over, at the most.
    #[must_use]
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }
}

const PREFIX: &str = "fencelock:1:";

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            token,
            session,
            ttl,
        } = self;
        let millis = ttl.as_duration().as_millis();
        write!(f, "{PREFIX}{}:{token}:{millis}:{key}", session.as_i64())
    }
}

impl FromStr for Grant {
    type Err = Error;

    /// Reads what `Display` writes.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` that names the part that cannot be read.
    fn from_str(text: &str) -> Result<Self, Error> {
        let unreadable = |what: &str| {
            Error::invalid(format!(
                "{text:?} is no grant: {what} is missing or out of range in {PREFIX}SESSION:TOKEN:TTL:KEY"
            ))
        };
        let parts = text.strip_prefix(PREFIX);
        let mut parts = parts
            .ok_or_else(|| unreadable("the prefix"))?
            .splitn(4, ':');
        let mut part = |what| parts.next().ok_or_else(|| unreadable(what));
        let session = part("the session")?.parse().ok();
        let session = session.and_then(|id| SessionId::new(id).ok());
        let token = part("the token")?.parse().ok();
        let millis = part("the ttl")?.parse().ok().map(Duration::from_millis);
        let key = LockKey::new(part("the key")?)?;
        Ok(Self {
            key,
            token: token.ok_or_else(|| unreadable("the token"))?,
            session: session.ok_or_else(|| unreadable("the session"))?,
            ttl: millis
                .and_then(|ttl| Ttl::new(ttl).ok())
                .ok_or_else(|| unreadable("the ttl"))?,
        })
    }
}

/// A lock that cannot be handed over, and its guard, which is as it was.
#[derive(Debug)]
pub struct NotHandedOver {
    pub(crate) guard: Guard,
    pub(crate) error: Error,
}

impl NotHandedOver {
    /// The guard.
    pub fn into_guard(self) -> Guard {
        self.guard
    }

    /// Why it cannot be handed over.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }
}

impl fmt::Display for NotHandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock {} is not handed over", self.guard.key())
    }
}

impl std::error::Error for NotHandedOver {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<NotHandedOver> for Error {
    /// The error; the guard is dropped, and the lock given back.
    fn from(not: NotHandedOver) -> Self {
        not.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(key: &str) -> Grant {
        Grant {
            key: LockKey::new(key).unwrap(),
            token: FencingToken::new(4711).unwrap(),
            session: SessionId::new(42).unwrap(),
            ttl: Ttl::from_secs(15).unwrap(),
        }
    }

    #[test]
    fn text_is_read_again() {
        assert_eq!(grant("k").to_string(), "fencelock:1:42:4711:15000:k");
        for key in ["k", "a:b:c", "Grüße/1", " "] {
            assert_eq!(grant(key).to_string().parse::<Grant>().unwrap(), grant(key));
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, named) in [
            ("", "the prefix"),
            ("fencelock:2:42:4711:15000:k", "the prefix"),
            ("fencelock:1:", "the token"),
            ("fencelock:1:-1:4711:15000:k", "the session"),
            ("fencelock:1:42:0x1:15000:k", "the token"),
            ("fencelock:1:42:4711:0:k", "the ttl"),
            ("fencelock:1:42:4711:15000", "the key"),
            ("fencelock:1:42:4711:15000:", "key"),
        ] {
            let refused = text.parse::<Grant>().unwrap_err();
            assert!(refused.to_string().contains(named), "{refused}");
        }
    }
}
