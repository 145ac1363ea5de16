use std::time::Duration;

use lock_spi::{AttemptId, Owner, Payload, SessionId};

use super::*;
use crate::codec::{LockEntry, LockValue, token};
use crate::ops::{Sight, Ticket};

const HOLDER: u64 = 5;

fn held() -> Option<LockEntry> {
    let value = LockValue {
        owner: Owner::default(),
        session: SessionId::new(1).unwrap(),
        attempt: AttemptId::from_u128(1),
        term: 0,
        payload: Payload::default(),
        granted_at: Duration::ZERO,
    };
    let token = FencingToken::new(HOLDER).unwrap();
    Some(LockEntry {
        token,
        value,
        leased: true,
    })
}

/// One whose place is the last of these, if it is among them.
fn seen(lock: Option<LockEntry>, queue: &[&'static str], own: bool) -> Queued {
    let ticket = |name: &&'static str| Ticket {
        stored: Bytes::from_static(name.as_bytes()),
        place: 3,
    };
    let ahead = queue.split_last().filter(|_| own);
    Queued {
        session_stands: true,
        sight: Sight {
            lock,
            floor: None,
            place: Some(7),
        },
        ahead: ahead.map(|(_, ahead)| ahead.iter().map(ticket).collect()),
        anybody: !queue.is_empty(),
        first: queue.first().map(|name| ticket(name).stored),
        ..Queued::default()
    }
}

fn ticket(name: &'static str) -> Next {
    Next::WaitFor(Goal::Ticket(Bytes::from_static(name.as_bytes())))
}

const FIRST_FEW: Part = Part::Oldest(QUEUE_LOOKED_AT);
const ONLY_A: Part = Part::Only(Bytes::from_static(b"a"));

#[test]
fn who_has_a_place_waits_for_whoever_is_right_before_it() {
    for (look, part, next) in [
        (
            seen(held(), &["own"], true),
            Part::All,
            Next::WaitFor(Goal::Lock),
        ),
        (
            seen(held(), &["own"], true),
            FIRST_FEW,
            Next::WaitFor(Goal::Lock),
        ),
        (seen(None, &["own"], true), FIRST_FEW, Next::Take),
        (
            seen(held(), &["a", "b", "own"], true),
            Part::All,
            ticket("b"),
        ),
        (seen(None, &["a", "b", "own"], true), FIRST_FEW, ticket("b")),
        (
            seen(held(), &["a", "b"], false),
            FIRST_FEW,
            Next::LookBeyond,
        ),
        (seen(held(), &["a"], false), ONLY_A, ticket("a")),
        (seen(None, &["a"], false), ONLY_A, ticket("a")),
        (seen(held(), &[], false), ONLY_A, Next::LookForAnother),
        (seen(held(), &["a"], false), Part::All, Next::Try),
    ] {
        assert_eq!(behind(&look, &part), next, "{look:?} {part:?}");
    }
}

#[test]
fn who_has_lost_its_place_or_its_session_tries() {
    let mut look = seen(held(), &["a", "own"], true);
    look.sight.place = None;
    assert_eq!(behind(&look, &Part::All), Next::Try);
    let mut look = seen(held(), &["a", "own"], true);
    look.session_stands = false;
    assert_eq!(behind(&look, &Part::All), Next::Try);
    assert_eq!(refused(&look, None), Next::Try);
}

#[test]
fn who_has_no_place_waits_for_what_refused_it() {
    let by = token(0, HOLDER.cast_signed()).ok();
    let other = token(0, 4).ok();
    for (look, by, next) in [
        (seen(held(), &[], false), by, Next::WaitFor(Goal::Lock)),
        (seen(held(), &["a"], false), None, Next::WaitFor(Goal::Lock)),
        (seen(held(), &[], false), other, Next::Try),
        (seen(None, &["a", "b"], false), None, ticket("a")),
        (seen(None, &["a"], false), by, Next::Try),
        (seen(None, &[], false), None, Next::Try),
    ] {
        assert_eq!(refused(&look, by), next, "{look:?} {by:?}");
    }
}
