use std::fmt;
use std::str::FromStr;

use crate::error::Invalid;

/// Names one grant of a key for all time; a later grant of the key has a higher one.
///
/// Hand it to the resource with every write: the resource refuses a token lower than the highest
/// it has seen (`lock_fence::HighWaterMark` does). Tokens are compared, stored and passed on; what
/// the bits mean is the store's business. They leave gaps.
///
/// In text and in JSON a token is its decimal digits; in JSON always a string, because a double
/// cannot hold 63 bits.
///
/// # Examples
///
/// ```
/// use lock_spi::FencingToken;
///
/// let first: FencingToken = "41".parse()?;
/// let second = FencingToken::new(42)?;
/// assert!(second > first);
/// assert_eq!(second.as_i64(), 42);
/// # Ok::<(), lock_spi::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The highest token: 2^63 − 1, so that signed 64-bit columns can hold every token.
    pub const MAX: Self = Self(i64::MAX.unsigned_abs());
    /// Bits of the store's counter below the term.
    pub const COUNTER_BITS: u32 = 44;
    /// The highest counter of one term.
    pub const MAX_COUNTER: u64 = (1 << Self::COUNTER_BITS) - 1;
    /// The highest term.
    pub const MAX_TERM: u64 = (1 << (63 - Self::COUNTER_BITS)) - 1;

    /// Takes a token that a store handed out.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when `value` is 0 or above [`FencingToken::MAX`].
    pub fn new(value: u64) -> Result<Self, Invalid> {
        if value == 0 || value > Self::MAX.0 {
            return Err(Invalid::token(value.to_string()));
        }
        Ok(Self(value))
    }

    /// For stores: the token of a grant, `term · 2^44 + counter`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when either part is out of its range, or both are 0.
    pub fn from_parts(term: u64, counter: u64) -> Result<Self, Invalid> {
        if term > Self::MAX_TERM || counter > Self::MAX_COUNTER {
            return Err(Invalid::token(format!("term {term}, counter {counter}")));
        }
        Self::new((term << Self::COUNTER_BITS) + counter)
    }

    /// For stores: the term, which rises when the store's counter may have gone back.
    #[must_use]
    pub const fn term(self) -> u64 {
        self.0 >> Self::COUNTER_BITS
    }

    /// For stores: the store's own rising number within the term.
    #[must_use]
    pub const fn counter(self) -> u64 {
        self.0 & Self::MAX_COUNTER
    }

    /// The token as a number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The token for a signed 64-bit column; it never overflows.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0.cast_signed()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FencingToken {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digits_only = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|_| digits_only);
        Self::new(value.ok_or_else(|| Invalid::token(text))?)
    }
}

impl TryFrom<i64> for FencingToken {
    type Error = Invalid;

    fn try_from(value: i64) -> Result<Self, Invalid> {
        Self::new(u64::try_from(value).map_err(|_| Invalid::token(value.to_string()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_order_by_term_first() {
        let old = FencingToken::from_parts(0, FencingToken::MAX_COUNTER).unwrap();
        let new = FencingToken::from_parts(1, 1).unwrap();
        assert!(new > old);
        assert_eq!((new.term(), new.counter()), (1, 1));
    }

    #[test]
    fn the_highest_token_fits_a_signed_column() {
        let highest =
            FencingToken::from_parts(FencingToken::MAX_TERM, FencingToken::MAX_COUNTER).unwrap();
        assert_eq!(highest, FencingToken::MAX);
        assert_eq!(highest.as_i64(), i64::MAX);
    }

    #[test]
    fn what_no_store_hands_out_is_refused() {
        assert!(FencingToken::new(0).is_err());
        assert!(FencingToken::new(1 << 63).is_err());
        assert!(FencingToken::from_parts(FencingToken::MAX_TERM + 1, 1).is_err());
        assert!(FencingToken::from_parts(0, FencingToken::MAX_COUNTER + 1).is_err());
        assert!(FencingToken::try_from(-1).is_err());
        for text in ["", "0", "-1", "+1", " 1", "1 ", "9223372036854775808", "x"] {
            let refused = text.parse::<FencingToken>().unwrap_err();
            assert!(refused.to_string().contains(text), "{refused}");
        }
    }
}
