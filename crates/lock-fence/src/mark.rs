use std::sync::atomic::{AtomicU64, Ordering};

use lock_spi::FencingToken;

/// The highest token that a resource has seen.
///
/// One mark per resource, shared by everyone who writes to it; tokens of different keys do not
/// compare. Two calls at once are decided one after the other, so whoever holds the older token is
/// refused from the moment the newer one was admitted.
///
/// The mark compares, it does not write. Where a write can be overtaken between its admission and
/// its effect, admit it under the lock, or in the transaction, that the write itself takes.
///
/// It lives as long as the process. Where the resource outlives the process, keep
/// [`highest`](Self::highest) with it and begin with [`starting_at`](Self::starting_at).
#[derive(Debug, Default)]
pub struct HighWaterMark {
    // No token is 0: it stands for none seen.
    highest: AtomicU64,
}

/// The token is older than one that the resource has seen: the lock has had another holder since.
///
/// Nothing was written. Trying again with the same token is of no use.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("stale fencing token {token}: token {highest} was seen before")]
pub struct Stale {
    /// The token that was refused.
    pub token: FencingToken,
    /// The highest one seen before.
    pub highest: FencingToken,
}

impl HighWaterMark {
    /// A mark that has seen no token; the first is admitted, whatever it is.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            highest: AtomicU64::new(0),
        }
    }

    /// A mark that has seen `token`.
    #[must_use]
    pub const fn starting_at(token: FencingToken) -> Self {
        Self {
            highest: AtomicU64::new(token.as_u64()),
        }
    }

    /// Admits a token that is at least as high as every one admitted before; compares and remembers
    /// in one atomic step.
    ///
    /// # Errors
    ///
    /// [`Stale`] when a higher token was admitted before.
    pub fn admit(&self, token: FencingToken) -> Result<(), Stale> {
        // AcqRel: who is admitted sees what those admitted before it wrote.
        let before = self.highest.fetch_max(token.as_u64(), Ordering::AcqRel);
        match FencingToken::new(before) {
            Ok(highest) if highest > token => Err(Stale { token, highest }),
            // Lower, equal, or 0 for none.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The highest token admitted so far.
    #[must_use]
    pub fn highest(&self) -> Option<FencingToken> {
        FencingToken::new(self.highest.load(Ordering::Acquire)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn token(value: u64) -> FencingToken {
        FencingToken::new(value).unwrap()
    }

    /// B151: a resource refuses an old token after a new one, and admits an equal one.
    #[test]
    fn an_old_token_is_refused_and_an_equal_one_admitted() {
        let mark = HighWaterMark::new();
        assert_eq!(mark.admit(token(7)), Ok(()));
        assert_eq!(mark.admit(token(9)), Ok(()));
        assert_eq!(mark.admit(token(9)), Ok(()));
        let refused = Stale {
            token: token(7),
            highest: token(9),
        };
        assert_eq!(mark.admit(token(7)), Err(refused));
        assert_eq!(mark.highest(), Some(token(9)));
    }

    /// B151: a new resource admits the first token, whatever it is.
    #[test]
    fn a_new_resource_admits_any_first_token() {
        for first in [1, 2, FencingToken::MAX.as_u64()] {
            let mark = HighWaterMark::new();
            assert_eq!(mark.highest(), None);
            assert_eq!(mark.admit(token(first)), Ok(()));
        }
    }

    #[test]
    fn a_mark_goes_on_where_an_earlier_one_ended() {
        let mark = HighWaterMark::starting_at(token(9));
        assert!(mark.admit(token(8)).is_err());
        assert!(mark.admit(token(9)).is_ok());
    }

    #[test]
    fn a_higher_term_beats_any_counter() {
        let old = FencingToken::from_parts(1, FencingToken::MAX_COUNTER).unwrap();
        let new = FencingToken::from_parts(2, 1).unwrap();
        let mark = HighWaterMark::starting_at(new);
        assert!(mark.admit(old).is_err());
    }

    #[test]
    fn a_refusal_names_both_tokens() {
        let mark = HighWaterMark::starting_at(token(9));
        let told = mark.admit(token(7)).unwrap_err().to_string();
        assert_eq!(told, "stale fencing token 7: token 9 was seen before");
    }

    #[test]
    fn of_writers_at_once_the_highest_wins_and_each_sees_tokens_rise() {
        const WRITERS: u64 = 4;
        const WRITES: u64 = 10_000;
        let mark = HighWaterMark::new();
        let start = Barrier::new(usize::try_from(WRITERS).unwrap());
        std::thread::scope(|scope| {
            for writer in 1..=WRITERS {
                let (mark, start) = (&mark, &start);
                scope.spawn(move || {
                    start.wait();
                    for step in 0..WRITES {
                        let own = token(step * WRITERS + writer);
                        let seen = mark.highest();
                        let admitted = mark.admit(own);
                        // What was seen before can only have risen.
                        if seen > Some(own) {
                            assert!(admitted.is_err());
                        }
                        assert!(mark.highest() >= Some(own));
                    }
                });
            }
        });
        assert_eq!(mark.highest(), Some(token(WRITERS * WRITES)));
    }
}
