//! Every transaction against a server in memory, and every reply that makes no sense.

mod bench;

use std::time::Duration;

use etcd_kv::{
    Consistency, Header, KeyRange, KeyValue, Op, OpResponse, PutResponse, RangeResponse, Txn,
    TxnResponse,
};
use lock_spi::{
    AttemptId, Effect, FencingToken, LockKey, Namespace, Owner, RevocationId, SessionId, Ttl,
};
use proptest::prelude::*;
use sim_runtime::World;

use self::bench::{Bench, lock_value, meta_value, record};
use super::*;
use crate::codec::{KeySpace, MetaValue, SessionValue, TicketValue, token};

const OWN: AttemptId = AttemptId::from_u128(1);
const OTHER: AttemptId = AttemptId::from_u128(2);

fn minted(claim: &Claim) -> i64 {
    match claim {
        Claim::Granted(minted) => minted.revision,
        Claim::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

fn refusal(claim: Claim) -> Refusal {
    match claim {
        Claim::Refused(refusal) => *refusal,
        Claim::Granted(minted) => panic!("granted: {minted:?}"),
    }
}

fn placed(reply: EnqueueReply) -> i64 {
    match reply {
        EnqueueReply::Placed { place, .. } => place,
        EnqueueReply::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

fn bench<F: Future<Output = ()>>(story: impl FnOnce(Bench) -> F) {
    World::new(0).block_on(async { story(Bench::new().await).await });
}

#[test]
fn a_grant_takes_what_is_free_and_its_revision_is_the_counter() {
    bench(async |bench| {
        let revision = minted(&bench.grant(OWN).await);
        assert_eq!(revision, bench.server.revision());
        let again = refusal(bench.grant(OWN).await);
        let entry = again.sight.held_by(OWN).unwrap();
        assert_eq!(entry.token, token(0, revision).unwrap());
        assert!(entry.leased);
        let other = refusal(bench.grant(OTHER).await);
        assert_eq!((other.epoch, other.sight.held_by(OTHER)), (Some(3), None));
    });
}

#[test]
fn a_grant_never_barges_past_a_queue() {
    bench(async |bench| {
        let place = placed(bench.enqueue(OTHER).await);
        let refused = refusal(bench.grant(OWN).await);
        assert_eq!((refused.sight.lock, refused.sight.place), (None, None));
        assert_eq!(bench.look(OTHER).await.sight.place, Some(place));
    });
}

#[test]
fn whoever_takes_a_place_sees_who_is_right_before_it() {
    bench(async |bench| {
        let before = |reply| match reply {
            EnqueueReply::Placed { before, .. } => before,
            EnqueueReply::Refused(refusal) => panic!("refused: {refusal:?}"),
        };
        assert_eq!(before(bench.enqueue(OWN).await), None);
        let first = before(bench.enqueue(OTHER).await).unwrap();
        assert_eq!(first.stored, bench.wish(OWN).ticket());
        assert_eq!(bench.look(OWN).await.sight.place, Some(first.place));
        let second = before(bench.enqueue(AttemptId::from_u128(99)).await).unwrap();
        assert_eq!(second.stored, bench.wish(OTHER).ticket());
    });
}

#[test]
fn a_bump_refuses_every_earlier_creating_request() {
    bench(async |mut bench| {
        let bump = Bump {
            wish: bench.wish(OWN),
        };
        let (epoch, sight) = bench.send(&bump).await.unwrap();
        assert_eq!(sight, Sight::default());
        assert_eq!(refusal(bench.grant(OWN).await).epoch, Some(epoch));
        assert!(matches!(bench.enqueue(OWN).await, EnqueueReply::Refused(_)));
        bench.epoch = epoch;
        minted(&bench.grant(OWN).await);
    });
}

#[test]
fn a_bump_of_a_session_that_is_gone_puts_nothing() {
    bench(async |bench| {
        bench
            .send(&Close {
                keys: &bench.keys,
                session: bench.session,
            })
            .await;
        let bump = Bump {
            wish: bench.wish(OWN),
        };
        assert_eq!(bench.send(&bump).await, None);
        assert_eq!(refusal(bench.grant(OWN).await).epoch, Some(0));
    });
}

#[test]
fn a_ticket_is_good_for_one_take() {
    bench(async |bench| {
        let place = placed(bench.enqueue(OWN).await);
        let revision = minted(&bench.take(OWN, place, &[]).await);
        assert_eq!(bench.delete(revision).await, DeleteReply::Ended);
        let late = refusal(bench.take(OWN, place, &[]).await);
        assert_eq!((late.sight.lock, late.sight.place), (None, None));
    });
}

#[test]
fn a_skip_removes_exactly_the_tickets_that_were_seen() {
    bench(async |bench| {
        placed(bench.enqueue(OTHER).await);
        let place = placed(bench.enqueue(OWN).await);
        let ahead = bench.look(OWN).await.ahead.unwrap();
        assert_eq!(ahead.len(), 1);
        let stale = [Ticket {
            place: 1,
            ..ahead[0].clone()
        }];
        refusal(bench.take(OWN, place, &stale).await);
        minted(&bench.take(OWN, place, &ahead).await);
        assert!(!bench.look(OWN).await.anybody);
    });
}

#[test]
fn each_form_of_abandon_leaves_no_ticket_and_two_settle() {
    bench(async |bench| {
        for (form, settles) in [
            (AbandonForm::Answered, false),
            (AbandonForm::Unanswered, true),
            (AbandonForm::Full, true),
        ] {
            bench.enqueue(OWN).await;
            let wish = bench.wish(OWN);
            let abandoned = bench.send(&Abandon { wish, form }).await;
            assert_eq!(abandoned.epoch.is_some(), form == AbandonForm::Unanswered);
            assert_eq!(bench.look(OWN).await.sight.place, None);
            let refused = matches!(bench.enqueue(OWN).await, EnqueueReply::Refused(_));
            assert_eq!(refused, settles, "{form:?}");
        }
        let holds = bench.look(OWN).await.sight.lock;
        assert_eq!(holds, None);
    });
}

#[test]
fn a_delete_ends_the_grant_that_it_names_and_no_other() {
    bench(async |mut bench| {
        let first = minted(&bench.grant(OWN).await);
        assert_eq!(bench.delete(first + 1).await, DeleteReply::Gone);
        assert_eq!(bench.delete(first).await, DeleteReply::Ended);
        let second = minted(&bench.grant(OTHER).await);
        assert_eq!(bench.delete(first).await, DeleteReply::Gone);
        let own = std::mem::replace(&mut bench.session, SessionId::new(8).unwrap());
        assert_eq!(
            bench.delete(second).await,
            DeleteReply::Gone,
            "another session's"
        );
        bench.session = own;
        bench.meta += 1;
        assert!(matches!(
            bench.delete(second).await,
            DeleteReply::MetaChanged(Some(_))
        ));
    });
}

#[test]
fn a_revoke_does_all_or_nothing_and_once() {
    bench(async |bench| {
        let revision = minted(&bench.grant(OWN).await);
        let survey = || Survey {
            keys: &bench.keys,
            key: &bench.key,
            id: RevocationId::from_u128(1),
        };
        let written = record();
        let revoke = |lock| Revoke {
            survey: survey(),
            lock,
            floor: 0,
            meta: bench.meta,
            record: &written,
        };
        assert!(!bench.send(&revoke(revision + 1)).await);
        let surveyed = bench.send(&survey()).await;
        assert_eq!((surveyed.record, surveyed.floor), (None, None));
        assert!(bench.send(&revoke(revision)).await);
        let surveyed = bench.send(&survey()).await;
        assert_eq!(surveyed.lock, None);
        assert_eq!(surveyed.floor, Some(record().new_floor));
        assert_eq!(surveyed.record, Some(record()));
        assert!(!bench.send(&revoke(0)).await, "its copy");
    });
}

#[test]
fn a_session_is_written_once_and_shows_who_opened_it() {
    bench(async |bench| {
        let OpenReply::Stands { value, epoch } = bench.open(2).await else {
            panic!("opened twice");
        };
        assert_eq!((value.instance, epoch), (1, bench.epoch));
    });
}

#[test]
fn a_recovery_ends_everything_in_one_step() {
    bench(async |bench| {
        bench.grant(OWN).await;
        bench.enqueue(OTHER).await;
        let value = MetaValue {
            term: 5,
            ..meta_value()
        };
        let recover = Recover {
            keys: &bench.keys,
            expected: bench.meta,
            value: &value,
        };
        let meta = bench.send(&recover).await.unwrap();
        assert_eq!(meta.mod_revision, bench.server.revision());
        assert_eq!(bench.server.entries().len(), 1);
        assert_eq!(bench.send(&recover).await, Some(meta), "its copy");
    });
}

#[test]
fn a_confirmation_changes_nothing() {
    bench(async |bench| {
        let before = bench.server.entries();
        bench.send(&Confirm { keys: &bench.keys }).await;
        assert_eq!(bench.server.entries(), before);
    });
}

#[test]
fn a_peek_is_served_by_any_member() {
    bench(async |bench| {
        bench.grant(OWN).await;
        bench.enqueue(OTHER).await;
        let peek = Peek {
            keys: &bench.keys,
            key: &bench.key,
        };
        assert!(peek.txn().then.iter().all(
            |op| matches!(op, Op::Range(read) if read.consistency == Consistency::Serializable)
        ));
        assert_eq!(bench.send(&peek).await.waiters, 1);
    });
}

/// What a transaction touches, and how large it is.
fn assert_in_bounds(txn: &Txn) {
    let keys = |range: &KeyRange| match range {
        KeyRange::Key(key) | KeyRange::Prefix(key) => key.starts_with(b"/dlock/default/"),
        KeyRange::Span { .. } => false,
    };
    let ops = txn.then.iter().chain(&txn.otherwise);
    assert!(txn.when.iter().all(|compare| keys(&compare.range)));
    assert!(ops.into_iter().all(|op| match op {
        Op::Delete(delete) => keys(&delete.range),
        Op::Put(put) => put.key.starts_with(b"/dlock/default/"),
        Op::Range(range) => keys(&range.range) && range.revision.is_none(),
    }));
    for part in [txn.when.len(), txn.then.len(), txn.otherwise.len()] {
        assert!(part <= 128, "{part}");
    }
}

/// Reads a reply for its errors alone.
type ReadReply<'a> = &'a dyn Fn(TxnResponse) -> Result<()>;

/// Runs a check on every operation there is.
fn for_each_operation(check: &dyn Fn(&Txn, ReadReply<'_>)) {
    let keys = KeySpace::new(&Namespace::default());
    let key = LockKey::new("k".repeat(512)).unwrap();
    let session = SessionId::new(7).unwrap();
    let wish = Wish {
        keys: &keys,
        key: &key,
        session,
        attempt: OWN,
    };
    let (keys, key) = (&keys, &key);
    let lock = &lock_value(OWN);
    let ticket = &TicketValue {
        owner: Owner::default(),
        session,
        queued_at: Duration::ZERO,
    };
    let opened = &SessionValue {
        owner: Owner::default(),
        ttl: Ttl::DEFAULT,
        opened_at: Duration::ZERO,
        instance: 1,
    };
    let tickets: Vec<_> = (1..i64::from(QUEUE_LOOKED_AT))
        .map(|place| Ticket {
            stored: keys.ticket(key, AttemptId::from_u128(place.unsigned_abs().into())),
            place,
        })
        .collect();
    let locks = vec![key.clone(); 64];
    let id = RevocationId::from_u128(1);
    let meta = &meta_value();
    macro_rules! check {
        ($($operation:expr),* $(,)?) => {$({
            let operation = $operation;
            check(&operation.txn(), &|answer| operation.read_reply(answer).map(drop));
        })*};
    }
    check!(
        Grant {
            wish,
            epoch: 1,
            meta: 1,
            value: lock
        },
        Enqueue {
            wish,
            epoch: 1,
            meta: 1,
            value: ticket
        },
        Take {
            wish,
            meta: 1,
            place: 1,
            skip: &tickets,
            value: lock
        },
        Bump { wish },
        Abandon {
            wish,
            form: AbandonForm::Answered
        },
        Abandon {
            wish,
            form: AbandonForm::Unanswered
        },
        Abandon {
            wish,
            form: AbandonForm::Full
        },
        Delete {
            keys,
            key,
            token: FencingToken::MAX,
            session,
            meta: 1
        },
        Look {
            wish,
            part: Part::All
        },
        Peek { keys, key },
        Open {
            keys,
            session,
            meta: 1,
            value: opened
        },
        Close { keys, session },
        Confirm { keys },
        WriteMeta {
            keys,
            expected: 1,
            value: meta
        },
        Recover {
            keys,
            expected: 1,
            value: meta
        },
        Survey { keys, key, id },
        Revoke {
            survey: Survey { keys, key, id },
            lock: 1,
            floor: 1,
            meta: 1,
            record: &record()
        },
        Verify {
            keys,
            session,
            locks: &locks
        },
    );
}

#[test]
fn every_transaction_stays_below_its_namespace_and_within_the_servers_limits() {
    for_each_operation(&|txn, _| assert_in_bounds(txn));
}

fn any_answer() -> impl Strategy<Value = TxnResponse> {
    let kv =
        (any::<i64>(), any::<i64>(), any::<Vec<u8>>()).prop_map(|(created, changed, value)| {
            KeyValue {
                value: value.into(),
                create_revision: created,
                mod_revision: changed,
                ..KeyValue::default()
            }
        });
    let range = proptest::collection::vec(kv, 0..2).prop_map(|kvs| {
        OpResponse::Range(RangeResponse {
            kvs,
            ..RangeResponse::default()
        })
    });
    let op = prop_oneof![range, Just(OpResponse::Put(PutResponse::default()))];
    let ops = proptest::collection::vec(op, 0..6);
    (any::<bool>(), any::<i64>(), ops).prop_map(|(succeeded, revision, responses)| TxnResponse {
        header: Header {
            revision,
            ..Header::default()
        },
        succeeded,
        responses,
    })
}

proptest! {
    /// No reply makes a reader panic, and errors leave the effect to whoever sent the request.
    #[test]
    fn replies_that_make_no_sense_are_errors(answer in any_answer()) {
        for_each_operation(&|_, read_reply| {
            if let Err(error) = read_reply(answer.clone()) {
                assert_eq!(error.effect(), Effect::None);
            }
        });
    }
}
