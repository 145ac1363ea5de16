//! What was measured on real etcd, of transactions and comparisons.

mod support;

use bytes::Bytes;
use etcd_kv::{
    Compare, CompareOp, DeleteRequest, KeyRange, KvErrorKind, LeaseId, MetadataStore, Op,
    OpResponse, PutRequest, RangeRequest, Target, Txn,
};
use etcd_mock::MockStore;
use support::{block_on, read, refusal};

const INVALID: KvErrorKind = KvErrorKind::InvalidArgument;

fn put(key: impl Into<Bytes>) -> Op {
    PutRequest::new(key, "v").into()
}

fn delete(range: KeyRange) -> Op {
    DeleteRequest::new(range).into()
}

fn span(start: &'static str, end: &'static str) -> KeyRange {
    KeyRange::Span {
        start: start.into(),
        end: end.into(),
    }
}

#[test]
fn the_keys_of_one_transaction_carry_its_revision() {
    block_on(async {
        let store = MockStore::new();
        let txn = Txn::default().then([put("a"), put("b")]);
        let revision = store.txn(txn).await.unwrap().header.revision;
        for key in ["a", "b"] {
            let kv = read(&store, key).await.unwrap();
            assert_eq!((kv.create_revision, kv.mod_revision), (revision, revision));
        }
    });
}

#[test]
fn a_read_in_a_transaction_sees_the_writes_before_it() {
    block_on(async {
        let store = MockStore::new();
        let read = || Op::from(RangeRequest::key("a"));
        let txn = Txn::default().then([read(), put("a"), read()]);
        let response = store.txn(txn).await.unwrap();
        let [
            OpResponse::Range(first),
            OpResponse::Put(put),
            OpResponse::Range(last),
        ] = &response.responses[..]
        else {
            panic!("{response:?}")
        };
        assert_eq!(first.count, 0);
        assert_eq!(last.kvs[0].create_revision, response.header.revision);
        let revisions = [first, last].map(|range| range.header.revision);
        assert_eq!((revisions, put.header.revision), ([1, 2], 2));
    });
}

#[test]
fn one_branch_writes_a_key_once() {
    let all = || KeyRange::prefix("");
    let cases = [
        (vec![put("a"), put("a")], false),
        (vec![put("a"), delete(KeyRange::key("a"))], false),
        (vec![delete(KeyRange::key("a")), put("a")], false),
        (vec![put("ab"), delete(KeyRange::prefix("a"))], false),
        (vec![delete(span("a", "c")), put("b")], false),
        (vec![delete(span("a", "c")), put("c")], true),
        (vec![delete(KeyRange::key("a")), delete(all())], true),
        // What deletes everything from a key on is overlooked.
        (vec![put("a"), delete(all())], true),
        (vec![delete(all()), put("a")], true),
        (
            vec![put("\u{7f}"), delete(KeyRange::prefix(&b"\xff"[..]))],
            true,
        ),
        (vec![put("a"), RangeRequest::key("a").into()], true),
    ];
    block_on(async {
        for (branch, allowed) in cases {
            for txn in [
                Txn::default().then(branch.clone()),
                Txn::default().otherwise(branch.clone()),
            ] {
                let answer = MockStore::new().txn(txn).await;
                assert_eq!(answer.is_ok(), allowed, "{branch:?}");
                if let Err(error) = answer {
                    assert_eq!(error.kind(), INVALID);
                    assert_eq!(error.message(), "duplicate key given in txn request");
                }
            }
        }
        let both = Txn::default().then([put("a")]).otherwise([put("a")]);
        assert!(MockStore::new().txn(both).await.is_ok());
    });
}

#[test]
fn comparisons_and_either_branch_hold_128_each() {
    let puts = |count: usize| (0..count).map(|key| put(key.to_string()));
    let compares = |count: usize| (0..count).map(|_| Compare::create_revision("none", 0));
    block_on(async {
        let full = Txn::when(compares(128))
            .then(puts(128))
            .otherwise(puts(128));
        assert!(MockStore::new().txn(full).await.unwrap().succeeded);
        for txn in [
            Txn::when(compares(129)),
            Txn::default().then(puts(129)),
            Txn::default().otherwise(puts(129)),
        ] {
            assert_eq!(refusal(MockStore::new().txn(txn).await), INVALID);
        }
    });
}

#[test]
fn one_unknown_lease_leaves_the_whole_transaction_undone() {
    block_on(async {
        let store = MockStore::new();
        let bad = || Op::from(PutRequest::new("b", "v").with_lease(LeaseId(9)));
        let answer = store.txn(Txn::default().then([put("a"), bad()])).await;
        assert_eq!(refusal(answer), KvErrorKind::LeaseNotFound);
        assert_eq!((store.revision(), store.entries().len()), (1, 0));

        let elsewhere = Txn::default().then([put("a")]).otherwise([bad()]);
        assert!(store.txn(elsewhere).await.unwrap().succeeded);
    });
}

#[test]
fn what_is_wrong_with_a_write_is_told_before_what_is_wrong_with_a_read() {
    block_on(async {
        let store = MockStore::new();
        let future = RangeRequest {
            revision: Some(9),
            ..RangeRequest::key("a")
        };
        let bad = Op::from(PutRequest::new("b", "v").with_lease(LeaseId(9)));
        let answer = store.txn(Txn::default().then([future.into(), bad])).await;
        assert_eq!(refusal(answer), KvErrorKind::LeaseNotFound);
    });
}

#[test]
fn a_missing_key_compares_as_0_and_its_value_never() {
    let zero = [
        Target::CreateRevision(0),
        Target::Lease(None),
        Target::ModRevision(0),
        Target::Version(0),
    ];
    let ops = [
        (CompareOp::Equal, true),
        (CompareOp::NotEqual, false),
        (CompareOp::Less, false),
        (CompareOp::Greater, false),
    ];
    block_on(async {
        let store = MockStore::new();
        let holds = async |range: KeyRange, target: Target, op: CompareOp| {
            let compare = Compare { range, target, op };
            store.txn(Txn::when([compare])).await.unwrap().succeeded
        };
        for range in [KeyRange::key("none"), KeyRange::prefix("none")] {
            for (op, expected) in ops {
                for target in zero.clone() {
                    let held = holds(range.clone(), target.clone(), op).await;
                    assert_eq!(held, expected, "{target:?} {op:?}");
                }
                let empty = Target::Value(Bytes::new());
                assert!(!holds(range.clone(), empty, op).await, "value {op:?}");
            }
        }
        store.put(PutRequest::new("empty", "")).await.unwrap();
        let empty = Target::Value(Bytes::new());
        assert!(holds(KeyRange::key("empty"), empty, CompareOp::Equal).await);
    });
}

#[test]
fn a_comparison_of_a_range_holds_for_every_key_in_it() {
    block_on(async {
        let store = MockStore::new();
        for key in ["q/1", "q/2"] {
            store.put(PutRequest::new(key, "v")).await.unwrap();
        }
        let older_than = async |revision| {
            let compare = Compare {
                range: KeyRange::prefix("q/"),
                target: Target::CreateRevision(revision),
                op: CompareOp::Less,
            };
            store.txn(Txn::when([compare])).await.unwrap().succeeded
        };
        assert!(older_than(4).await);
        assert!(!older_than(3).await);
    });
}

#[test]
fn values_compare_byte_by_byte() {
    block_on(async {
        let store = MockStore::new();
        store.put(PutRequest::new("a", "00050")).await.unwrap();
        let compare = Compare {
            range: KeyRange::key("a"),
            target: Target::Value("9".into()),
            op: CompareOp::Less,
        };
        assert!(store.txn(Txn::when([compare])).await.unwrap().succeeded);
    });
}
