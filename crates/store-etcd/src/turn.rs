//! Whose turn it is: what an attempt does next, by what it sees.

use lock_spi::AttemptId;

use crate::attempts::Facts;
use crate::codec::LockEntry;
use crate::ops::{Queued, Ticket};

/// What an attempt does next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    /// It holds the lock.
    Holds(Box<LockEntry>),
    /// What it had is gone: it is over.
    Over,
    /// The key is free and nobody waits.
    Claim,
    /// It goes to the end of the queue.
    Enqueue,
    /// It is first in line, or those before it may be late.
    Take { place: i64, behind: Vec<Ticket> },
    /// It waits, with so many ahead of it if that was seen.
    Waits { place: i64, ahead: Option<u32> },
    /// Somebody else has the key, and it does not wait.
    Refused(Option<Box<LockEntry>>),
}

/// Decides by what is known of the attempt and what was read.
pub(crate) fn next(attempt: AttemptId, known: &Facts, joins: bool, seen: &Queued) -> Next {
    let sight = &seen.sight;
    if let Some(entry) = sight.held_by(attempt) {
        return Next::Holds(Box::new(entry.clone()));
    }
    if known.grant.is_some() {
        return Next::Over;
    }
    let Some(place) = sight.place else {
        // A ticket goes by being taken, skipped or abandoned, and a taken one has left a lock.
        if known.place.is_some() {
            return Next::Over;
        }
        return match &sight.lock {
            None if !seen.anybody => Next::Claim,
            _ if joins => Next::Enqueue,
            lock => Next::Refused(lock.clone().map(Box::new)),
        };
    };
    match &seen.ahead {
        Some(ahead) if sight.lock.is_none() => Next::Take {
            place,
            behind: ahead.clone(),
        },
        ahead => Next::Waits {
            place,
            ahead: ahead.as_deref().map(places),
        },
    }
}

pub(crate) fn places(ahead: &[Ticket]) -> u32 {
    u32::try_from(ahead.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_spi::{Owner, Payload, SessionId};

    use super::*;
    use crate::codec::{LockValue, token};
    use crate::ops::Sight;

    const OWN: AttemptId = AttemptId::from_u128(1);
    const OTHER: AttemptId = AttemptId::from_u128(2);

    fn lock(attempt: AttemptId) -> LockEntry {
        let value = LockValue {
            owner: Owner::default(),
            session: SessionId::new(1).unwrap(),
            attempt,
            term: 0,
            payload: Payload::default(),
            granted_at: Duration::ZERO,
        };
        LockEntry {
            token: token(0, 5).unwrap(),
            value,
            leased: true,
        }
    }

    fn seen(lock: Option<LockEntry>, place: Option<i64>, ahead: Option<usize>) -> Queued {
        let ticket = Ticket {
            stored: "t".into(),
            place: 3,
        };
        Queued {
            sight: Sight {
                lock,
                floor: None,
                place,
            },
            ahead: ahead.map(|count| vec![ticket; count]),
            anybody: place.is_some() || ahead.is_some(),
            ..Queued::default()
        }
    }

    #[test]
    fn every_case_has_its_next_step() {
        let nothing = Facts::default();
        let granted = Facts {
            grant: Some(token(0, 5).unwrap()),
            ..Facts::default()
        };
        let placed = Facts {
            place: Some(7),
            ..Facts::default()
        };
        let waits = |ahead| Next::Waits { place: 7, ahead };
        let (own, other) = (Some(lock(OWN)), Some(lock(OTHER)));
        let refused = Next::Refused(other.clone().map(Box::new));
        let take = |count| Next::Take {
            place: 7,
            behind: seen(None, None, Some(count)).ahead.unwrap(),
        };
        for (known, joins, seen, next_step) in [
            (
                &nothing,
                true,
                seen(own.clone(), None, None),
                Next::Holds(Box::new(lock(OWN))),
            ),
            (
                &granted,
                true,
                seen(own, None, None),
                Next::Holds(Box::new(lock(OWN))),
            ),
            (&granted, true, seen(None, None, None), Next::Over),
            (&granted, true, seen(other.clone(), None, None), Next::Over),
            (&placed, true, seen(None, None, None), Next::Over),
            (&placed, true, seen(other.clone(), None, None), Next::Over),
            (&nothing, true, seen(None, None, None), Next::Claim),
            (&nothing, false, seen(None, None, None), Next::Claim),
            (
                &nothing,
                true,
                seen(other.clone(), None, None),
                Next::Enqueue,
            ),
            (&nothing, true, seen(None, None, Some(1)), Next::Enqueue),
            (&nothing, false, seen(other.clone(), None, None), refused),
            (
                &nothing,
                false,
                seen(None, None, Some(1)),
                Next::Refused(None),
            ),
            (
                &placed,
                false,
                seen(other.clone(), Some(7), Some(2)),
                waits(Some(2)),
            ),
            (&placed, true, seen(other, Some(7), None), waits(None)),
            (&placed, true, seen(None, Some(7), None), waits(None)),
            (&placed, true, seen(None, Some(7), Some(0)), take(0)),
            (&placed, true, seen(None, Some(7), Some(2)), take(2)),
        ] {
            assert_eq!(
                next(OWN, known, joins, &seen),
                next_step,
                "{known:?} {seen:?}"
            );
        }
    }
}
