//! What was measured on real etcd, of keys, revisions, reads and compaction.

mod support;

use bytes::Bytes;
use etcd_kv::{
    Compare, DeleteRequest, KeyRange, KvErrorKind, Lease, LeaseId, MetadataStore, Op, Order,
    PutRequest, RangeRequest, Txn,
};
use etcd_mock::MockStore;
use support::{block_on, read, refusal, value};

const INVALID: KvErrorKind = KvErrorKind::InvalidArgument;

fn put(key: impl Into<Bytes>) -> Op {
    PutRequest::new(key, "v").into()
}

fn delete(range: KeyRange) -> Op {
    DeleteRequest::new(range).into()
}

#[test]
fn a_fresh_store_is_at_revision_1() {
    assert_eq!(MockStore::new().revision(), 1);
}

#[test]
fn every_change_costs_one_revision_and_everything_else_none() {
    block_on(async {
        let store = MockStore::new();
        let mut before = store.revision();
        let mut expect = |cost: i64, what: &str| {
            assert_eq!(store.revision() - before, cost, "{what}");
            before = store.revision();
        };

        store.put(PutRequest::new("a", "1")).await.unwrap();
        expect(1, "a put");
        store.put(PutRequest::new("a", "1")).await.unwrap();
        expect(1, "a put of the same value");
        store.delete(DeleteRequest::key("none")).await.unwrap();
        expect(0, "a delete of a missing key");
        store.delete(DeleteRequest::key("a")).await.unwrap();
        expect(1, "a delete");
        let txn = Txn::default().then([put("a"), put("b"), put("c")]);
        store.txn(txn).await.unwrap();
        expect(1, "a transaction with three puts");
        let txn = Txn::default().then([delete(KeyRange::prefix("d")), put("d\0")]);
        assert_eq!(refusal(store.txn(txn).await), INVALID);
        expect(0, "a refused transaction");
        let txn = Txn::default().then([delete(KeyRange::key("none")), put("d")]);
        store.txn(txn).await.unwrap();
        expect(1, "a transaction with one real change of two");
        store.txn(Txn::default()).await.unwrap();
        expect(0, "an empty transaction");
        let txn = Txn::default().then([RangeRequest::key("a").into()]);
        store.txn(txn).await.unwrap();
        expect(0, "a transaction that reads");
        let txn = Txn::default().then([delete(KeyRange::key("none"))]);
        store.txn(txn).await.unwrap();
        expect(0, "a transaction that deletes nothing");
        let deleted = store.delete(DeleteRequest::new(KeyRange::prefix(""))).await;
        assert_eq!(deleted.unwrap().deleted, 4);
        expect(1, "a delete of four keys");

        store.lease_grant(LeaseId(1), 9).await.unwrap();
        expect(0, "a grant");
        store.lease_keep_alive_once(LeaseId(1)).await.unwrap();
        expect(0, "a keepalive");
        store.lease_time_to_live(LeaseId(1)).await.unwrap();
        expect(0, "a time to live");
        store.lease_revoke(LeaseId(1)).await.unwrap();
        expect(0, "a revoke without keys");
        store.lease_grant(LeaseId(2), 9).await.unwrap();
        for key in ["a", "b", "c"] {
            let request = PutRequest::new(key, "v").with_lease(LeaseId(2));
            store.put(request).await.unwrap();
        }
        expect(3, "three puts");
        store.lease_revoke(LeaseId(2)).await.unwrap();
        expect(1, "a revoke with three keys");
        store.compact(store.revision()).await.unwrap();
        expect(0, "a compaction");
    });
}

#[test]
fn a_write_answers_with_its_own_revision() {
    block_on(async {
        let store = MockStore::new();
        let written = store.put(PutRequest::new("a", "1")).await.unwrap().header;
        let header = store.delete(DeleteRequest::key("a")).await.unwrap().header;
        assert_eq!((written.revision, header.revision), (2, 3));
        let header = store.delete(DeleteRequest::key("a")).await.unwrap().header;
        assert_eq!(header.revision, 3, "nothing was deleted");
    });
}

#[test]
fn versions_count_the_puts_since_the_key_was_created() {
    block_on(async {
        let store = MockStore::new();
        for _ in 0..3 {
            store.put(PutRequest::new("a", "v")).await.unwrap();
        }
        let kv = read(&store, "a").await.unwrap();
        assert_eq!((kv.create_revision, kv.mod_revision, kv.version), (2, 4, 3));
        store.delete(DeleteRequest::key("a")).await.unwrap();
        store.put(PutRequest::new("a", "v")).await.unwrap();
        let kv = read(&store, "a").await.unwrap();
        assert_eq!((kv.create_revision, kv.mod_revision, kv.version), (6, 6, 1));
    });
}

#[test]
fn an_empty_key_is_refused_and_an_empty_prefix_is_all_keys() {
    block_on(async {
        let store = MockStore::new();
        let empty = || RangeRequest::key("");
        assert_eq!(refusal(store.put(PutRequest::new("", "v")).await), INVALID);
        assert_eq!(refusal(store.range(empty()).await), INVALID);
        assert_eq!(refusal(store.delete(DeleteRequest::key("")).await), INVALID);
        let txn = Txn::default().otherwise([empty().into()]);
        assert_eq!(refusal(store.txn(txn).await), INVALID);
        let txn = Txn::when([Compare::create_revision("", 0)]);
        assert_eq!(refusal(store.txn(txn).await), INVALID);
        assert!(store.range(RangeRequest::prefix("")).await.is_ok());
    });
}

#[test]
fn a_request_to_write_holds_one_and_a_half_mebibytes() {
    let limit = 3 * 512 * 1024;
    let of_size = |size: usize| PutRequest::new("k", vec![b'v'; size - 1]);
    block_on(async {
        let store = MockStore::new();
        store.put(of_size(limit)).await.unwrap();
        assert_eq!(refusal(store.put(of_size(limit + 1)).await), INVALID);
        let txn = Txn::default().then([of_size(limit).into(), put("x")]);
        assert_eq!(refusal(store.txn(txn).await), INVALID);
        assert_eq!(store.revision(), 2);
    });
}

#[test]
fn the_past_can_be_read_down_to_the_compact_revision() {
    block_on(async {
        let store = MockStore::new();
        for value in ["2", "3", "4"] {
            store.put(PutRequest::new("a", value)).await.unwrap();
        }
        store.delete(DeleteRequest::key("a")).await.unwrap();
        let at = async |revision| {
            let request = RangeRequest {
                revision: Some(revision),
                ..RangeRequest::key("a")
            };
            let answer = store.range(request).await.map_err(|error| error.kind())?;
            assert_eq!(answer.header.revision, 5, "that of the present");
            Ok(answer.kvs.first().map(|kv| kv.value.clone()))
        };
        assert_eq!(at(1).await, Ok(None));
        assert_eq!(at(2).await, Ok(Some("2".into())));
        store.compact(4).await.unwrap();
        let compacted = KvErrorKind::Compacted {
            compact_revision: 4,
        };
        assert_eq!(at(3).await, Err(compacted));
        assert_eq!(at(4).await, Ok(Some("4".into())));
        assert_eq!(at(5).await, Ok(None));
        assert_eq!(at(6).await, Err(KvErrorKind::FutureRevision));
        assert_eq!(refusal(store.compact(4).await), compacted);
        let beyond = refusal(store.compact(6).await);
        assert_eq!(beyond, KvErrorKind::FutureRevision);
    });
}

#[test]
fn ranges_are_sorted_cut_and_counted() {
    block_on(async {
        let store = MockStore::new();
        for key in ["c", "a", "b"] {
            store.put(PutRequest::new(key, "v")).await.unwrap();
        }
        let keys = async |request: RangeRequest| {
            let answer = store.range(request).await.unwrap();
            let keys: Vec<Bytes> = answer.kvs.into_iter().map(|kv| kv.key).collect();
            (keys.concat(), answer.more, answer.count)
        };
        let all = || RangeRequest::prefix("");
        assert_eq!(keys(all()).await, (b"abc".to_vec(), false, 3));
        let limited = RangeRequest {
            limit: Some(2),
            ..all()
        };
        assert_eq!(keys(limited).await, (b"ab".to_vec(), true, 3));
        let oldest = RangeRequest {
            limit: Some(1),
            order: Order::CreateRevision,
            ..all()
        };
        assert_eq!(keys(oldest).await, (b"c".to_vec(), true, 3));
        let newest = RangeRequest {
            limit: Some(2),
            order: Order::NewestFirst,
            ..all()
        };
        assert_eq!(keys(newest).await, (b"ba".to_vec(), true, 3));
        let counted = RangeRequest {
            count_only: true,
            ..all()
        };
        assert_eq!(keys(counted).await, (Vec::new(), false, 3));
        let bare = RangeRequest {
            keys_only: true,
            ..all()
        };
        let bare = store.range(bare).await.unwrap();
        assert!(bare.kvs.iter().all(|kv| kv.value.is_empty()));
        assert_eq!(
            store
                .get_prefix("a".into(), None, Some(2))
                .await
                .unwrap()
                .count,
            0
        );
    });
}

#[test]
fn cas_put_writes_a_missing_key_only() {
    block_on(async {
        let store = MockStore::new();
        let cas = async |value: &'static str| {
            let lease = Lease::Detached;
            store
                .cas_put("a".into(), value.into(), lease)
                .await
                .unwrap()
        };
        assert!(cas("1").await);
        assert!(!cas("2").await);
        assert_eq!(value(&store, "a").await.as_deref(), Some(&b"1"[..]));
        store.delete(DeleteRequest::key("a")).await.unwrap();
        assert!(cas("3").await);
    });
}

#[test]
fn previous_values_are_told_when_asked_for() {
    block_on(async {
        let store = MockStore::new();
        let request = |value: &'static str, prev_kv| PutRequest {
            prev_kv,
            ..PutRequest::new("a", value)
        };
        assert_eq!(store.put(request("1", true)).await.unwrap().prev_kv, None);
        assert_eq!(store.put(request("2", false)).await.unwrap().prev_kv, None);
        let previous = store.put(request("3", true)).await.unwrap().prev_kv;
        assert_eq!(previous.unwrap().value, "2");
        let request = DeleteRequest {
            prev_kv: true,
            ..DeleteRequest::new(KeyRange::prefix("a"))
        };
        let deleted = store.delete(request).await.unwrap();
        assert_eq!((deleted.deleted, deleted.prev_kvs.len()), (1, 1));
        assert_eq!(deleted.prev_kvs[0].value, "3");
    });
}
