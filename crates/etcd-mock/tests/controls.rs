//! What tests can do to a store that clients cannot.

mod support;

use std::time::Duration;

use etcd_kv::{KeyRange, KvErrorKind, LeaseId, MetadataStore, PutRequest, WatchRequest};
use etcd_mock::{MockStore, Options};
use support::{block_on, drain, put_leased, read, refusal, value};

const LEASE: LeaseId = LeaseId(7);

#[test]
fn headers_name_the_cluster_and_the_present_term() {
    block_on(async {
        let options = Options::default().with_cluster_id(5).with_raft_term(3);
        let store = MockStore::with_options(options);
        let header = store.put(PutRequest::new("a", "v")).await.unwrap().header;
        assert_eq!((header.cluster_id, header.raft_term), (5, 3));
        store.set_raft_term(4);
        store.lease_grant(LEASE, 5).await.unwrap();
        let header = store.lease_keep_alive_once(LEASE).await.unwrap().header;
        assert_eq!((header.cluster_id, header.raft_term), (5, 4));
        let member = header.member_id;
        let forked = store.fork().lease_time_to_live(LEASE).await.unwrap().header;
        assert_eq!((forked.raft_term, forked.member_id), (4, member));
    });
}

#[test]
fn clones_share_a_store_and_forks_do_not() {
    block_on(async {
        let store = MockStore::new();
        store.put(PutRequest::new("a", "1")).await.unwrap();
        let (clone, fork) = (store.clone(), store.fork());
        store.put(PutRequest::new("a", "2")).await.unwrap();
        fork.put(PutRequest::new("a", "3")).await.unwrap();
        assert_eq!(value(&clone, "a").await.as_deref(), Some(&b"2"[..]));
        assert_eq!(value(&fork, "a").await.as_deref(), Some(&b"3"[..]));
        let past = fork.get_prefix("a".into(), None, Some(2)).await.unwrap();
        assert_eq!(past.kvs[0].value, "1", "the history came along");
    });
}

/// B149: a restored backup hands out the revisions after it once more.
#[test]
fn a_restored_backup_goes_back_to_its_revision() {
    block_on(async {
        let store = MockStore::new();
        store.put(PutRequest::new("a", "1")).await.unwrap();
        let backup = store.snapshot();
        let first = store.put(PutRequest::new("a", "2")).await.unwrap().header;
        store.restore(&backup);
        assert_eq!(value(&store, "a").await.as_deref(), Some(&b"1"[..]));
        let second = store.put(PutRequest::new("a", "3")).await.unwrap().header;
        assert_eq!(first, second);
    });
}

#[test]
fn a_restored_backup_gives_leases_their_full_ttl_and_breaks_streams_off() {
    block_on(async {
        let store = MockStore::new();
        put_leased(&store, "a", LEASE, 20).await;
        store.advance(800);
        let request = WatchRequest::new(KeyRange::key("a"));
        let mut watch = store.watch(request).await.unwrap();
        let period = Duration::from_secs(60);
        let mut keep_alive = store.lease_keep_alive(LEASE, period).await.unwrap();
        store.restore(&store.snapshot());
        assert_eq!(store.lease_time_to_live(LEASE).await.unwrap().ttl, 20);

        let (mut events, ended) = drain(&mut watch);
        assert!(ended);
        assert_eq!(refusal(events.remove(0)), KvErrorKind::Unavailable);
        let (mut answers, ended) = drain(&mut keep_alive);
        assert!(ended);
        assert_eq!(refusal(answers.remove(0)), KvErrorKind::Unavailable);
        assert_eq!(store.open_streams(), 0);

        store.advance(2000);
        assert!(read(&store, "a").await.is_none());
    });
}

#[test]
fn entries_are_all_keys_in_byte_order() {
    block_on(async {
        let store = MockStore::new();
        for key in ["b", "a\0", "a"] {
            store.put(PutRequest::new(key, "v")).await.unwrap();
        }
        let keys: Vec<_> = store.entries().into_iter().map(|kv| kv.key).collect();
        assert_eq!(keys, ["a", "a\0", "b"]);
    });
}
