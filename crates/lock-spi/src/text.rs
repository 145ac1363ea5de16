//! The texts that callers choose: keys, key prefixes, namespaces, owners, payloads.
//!
//! Each is checked once, when it is made, so that every store has the same limits.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Invalid, Rule};

/// Makes a type of checked text: the struct, its constructor, and the conversions around them.
macro_rules! checked_text {
    (
        $(#[$docs:meta])*
        $name:ident, at most $max:literal bytes, checked by $check:expr
    ) => {
        $(#[$docs])*
        #[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The longest one, in bytes.
            pub const MAX_BYTES: usize = $max;

            /// Checks and takes a text.
            ///
            /// # Errors
            ///
            /// [`Invalid`] when it breaks the rule of the type; the error names text and rule.
            pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
                let text = text.as_ref();
                let check: fn(&str, usize) -> Result<(), Invalid> = $check;
                check(text, Self::MAX_BYTES)?;
                Ok(Self(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Invalid;

            fn try_from(text: &str) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;

            fn try_from(text: String) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl TryFrom<&String> for $name {
            type Error = Invalid;

            fn try_from(text: &String) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl From<&Self> for $name {
            fn from(known: &Self) -> Self {
                known.clone()
            }
        }
    };
}

checked_text! {
    /// What is locked: 1 to 512 bytes of UTF-8 without control characters (`char::is_control`).
    ///
    /// Keys are compared byte for byte: no normalisation, no case folding, and a key that is a
    /// prefix of another has nothing to do with it.
    ///
    /// # Examples
    ///
    /// ```
    /// use lock_spi::LockKey;
    ///
    /// let key = LockKey::new("orders/4711")?;
    /// assert_eq!(key.as_str(), "orders/4711");
    /// assert!(LockKey::new("a\0b").unwrap_err().to_string().contains("control character"));
    /// # Ok::<(), lock_spi::Invalid>(())
    /// ```
    LockKey, at most 512 bytes, checked by |text, max| match text {
        "" => Err(Invalid::new("key", text, Rule::Empty)),
        _ => plain("key", text, max),
    }
}

checked_text! {
    /// The start of keys, byte for byte; the empty prefix starts every key.
    KeyPrefix, at most 512 bytes, checked by |text, max| plain("key prefix", text, max)
}

checked_text! {
    /// A set of keys that knows nothing of the others: 1 to 64 characters of `[a-z0-9._-]`, not
    /// `.` or `..`.
    Namespace, at most 64 bytes, checked by |text, max| {
        let allowed = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte)
        };
        let fits = (1..=max).contains(&text.len()) && text != "." && text != "..";
        if fits && text.bytes().all(allowed) {
            return Ok(());
        }
        Err(Invalid::new("namespace", text, Rule::Namespace))
    }
}

checked_text! {
    /// Who holds a lock, for people to read: a label of at most 256 bytes without control
    /// characters.
    ///
    /// It identifies nobody and gives no rights: two clients may bear one label, and only the
    /// token names a grant.
    Owner, at most 256 bytes, checked by |text, max| plain("owner", text, max)
}

checked_text! {
    /// Why a grant was revoked, for the record and for its holder: at most 1 KiB without control
    /// characters.
    Reason, at most 1024 bytes, checked by |text, max| plain("reason", text, max)
}

impl Default for KeyPrefix {
    /// The empty prefix.
    fn default() -> Self {
        Self("".into())
    }
}

impl Default for Namespace {
    /// `default`.
    fn default() -> Self {
        Self("default".into())
    }
}

impl Default for Owner {
    /// No label.
    fn default() -> Self {
        Self("".into())
    }
}

impl Default for Reason {
    /// No reason.
    fn default() -> Self {
        Self("".into())
    }
}

/// Bytes that a holder shows to whoever reads the lock: at most 4 KiB.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Payload(Bytes);

impl Payload {
    /// The longest payload, in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Checks and takes a payload.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it is too long.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, Invalid> {
        let bytes = bytes.into();
        if bytes.len() > Self::MAX_BYTES {
            let found = format!("{} bytes", bytes.len());
            let rule = Rule::TooLong {
                max: Self::MAX_BYTES,
            };
            return Err(Invalid::new("payload", found, rule));
        }
        Ok(Self(bytes))
    }

    /// The payload's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

macro_rules! payload_from {
    ($($from:ty)*) => {$(
        impl TryFrom<$from> for Payload {
            type Error = Invalid;

            fn try_from(bytes: $from) -> Result<Self, Invalid> {
                Self::new(bytes)
            }
        }
    )*};
}

payload_from!(&'static str &'static [u8] String Vec<u8> Bytes);

/// Not too long, and nothing that a terminal or a log would obey.
fn plain(what: &'static str, text: &str, max: usize) -> Result<(), Invalid> {
    if text.len() > max {
        return Err(Invalid::new(what, text, Rule::TooLong { max }));
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(Invalid::new(what, text, Rule::ControlCharacter { at })),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bytes_and_nothing_more() {
        for text in [
            "a",
            "K",
            "k",
            "ß",
            "\u{e9}",
            "e\u{301}",
            "trailing ",
            "..",
            "/",
            "%2F",
            "日本",
        ] {
            assert_eq!(LockKey::new(text).unwrap().as_str(), text);
        }
        assert_ne!(
            LockKey::new("\u{e9}").unwrap(),
            LockKey::new("e\u{301}").unwrap()
        );
        assert!(LockKey::new("x".repeat(512)).is_ok());
    }

    #[test]
    fn refusals_name_the_value_and_the_rule() {
        for (text, rule) in [
            ("", "empty"),
            ("a\0b", "control character"),
            ("\u{85}", "control character"),
            ("a\nb", "control character"),
        ] {
            let error = LockKey::new(text).unwrap_err().to_string();
            assert!(
                error.contains(rule) && error.contains(&format!("{text:?}")),
                "{error}"
            );
        }
        let long = LockKey::new("é".repeat(257)).unwrap_err().to_string();
        assert!(long.contains("512 bytes") && long.len() < 300, "{long}");
        assert!(Owner::new("x".repeat(257)).is_err());
        assert!(Payload::new(vec![0; 4097]).is_err());
        assert!(Payload::new(vec![0; 4096]).is_ok());
    }

    #[test]
    fn namespaces_survive_a_url() {
        for good in ["a", "cron", "a.b-c_d", "0", &"x".repeat(64)] {
            assert!(Namespace::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "A", "a/b", "é", &"x".repeat(65)] {
            assert!(Namespace::new(bad).is_err(), "{bad}");
        }
    }
}
