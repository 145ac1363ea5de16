use std::fmt;

use crate::error::Invalid;
use crate::runtime::Runtime;

/// Names a session: a random positive 63-bit number, never used again.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(i64);

impl SessionId {
    /// Draws a new id.
    #[must_use]
    pub fn random(runtime: &dyn Runtime) -> Self {
        loop {
            let id = (runtime.random() >> 1).cast_signed();
            if id > 0 {
                return Self(id);
            }
        }
    }

    /// Takes an id that [`SessionId::random`] drew.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it is not positive.
    pub fn new(id: i64) -> Result<Self, Invalid> {
        if id > 0 {
            Ok(Self(id))
        } else {
            Err(Invalid::session(id))
        }
    }

    /// The id as a number.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0
    }
}

/// Names an attempt: one logical wish for a lock, from first try to grant or surrender.
///
/// A random 128-bit number, drawn before the first byte leaves and never used again. It is what
/// makes a repeated insert find what the first one did.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AttemptId(u128);

/// Names one wish to revoke, so that it can be repeated: a random 128-bit number.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RevocationId(u128);

/// Names one wish to recover, so that it can be repeated: a random 128-bit number.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RecoveryId(u128);

macro_rules! wide_id {
    ($($name:ident $what:literal),*) => {$(
        impl $name {
            /// Draws a new id.
            #[must_use]
            pub fn random(runtime: &dyn Runtime) -> Self {
                Self((u128::from(runtime.random()) << 64) | u128::from(runtime.random()))
            }

            /// Takes an id that was drawn at random.
            #[must_use]
            pub const fn from_u128(id: u128) -> Self {
                Self(id)
            }

            /// The id as a number.
            #[must_use]
            pub const fn as_u128(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl std::str::FromStr for $name {
            type Err = Invalid;
            /// Reads what `Display` writes: 32 lower-case hexadecimal digits.
            fn from_str(text: &str) -> Result<Self, Invalid> {
                hexadecimal(text, 32).map(Self).ok_or_else(|| Invalid::id($what, text))
            }
        }
    )*};
}
wide_id!(AttemptId "attempt id", RevocationId "revocation id", RecoveryId "recovery id");

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::str::FromStr for SessionId {
    type Err = Invalid;
    /// Reads what `Display` writes: 16 lower-case hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let id = hexadecimal(text, 16).and_then(|id| i64::try_from(id).ok());
        let id = id.and_then(|id| Self::new(id).ok());
        id.ok_or_else(|| Invalid::id("session id", text))
    }
}

/// Reads exactly so many lower-case digits; other forms of the same number are none of ours.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let own_form = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let well_formed = text.len() == digits && text.bytes().all(own_form);
    u128::from_str_radix(text, 16).ok().filter(|_| well_formed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_reads_back_and_no_other_does() {
        let attempt = AttemptId::from_u128(0xab);
        assert_eq!(attempt.to_string().parse::<AttemptId>().unwrap(), attempt);
        assert!("AB".parse::<AttemptId>().is_err());
        assert!(
            attempt
                .to_string()
                .to_uppercase()
                .parse::<AttemptId>()
                .is_err()
        );
        let session = SessionId::new(i64::MAX).unwrap();
        assert_eq!(session.to_string().parse::<SessionId>().unwrap(), session);
        assert!("0000000000000000".parse::<SessionId>().is_err());
        assert!("+000000000000001".parse::<SessionId>().is_err());
        assert!(SessionId::new(0).is_err());
        assert!(SessionId::new(-1).is_err());
    }
}
