//! What was measured on real etcd, of leases.

mod support;

use std::time::Duration;

use etcd_kv::{
    Compare, DeleteRequest, EventKind, KeyRange, KvErrorKind, Lease, LeaseId, MetadataStore,
    PutRequest, Txn, WatchEvent, WatchRequest,
};
use etcd_mock::{MockStore, Options};
use support::{block_on, drain, put_leased, read, refusal};

const LEASE: LeaseId = LeaseId(7);
const OTHER: LeaseId = LeaseId(8);

/// A store with a lease of this ttl and a key on it.
async fn with_lease(ttl: i64) -> MockStore {
    let store = MockStore::new();
    put_leased(&store, "a", LEASE, ttl).await;
    store
}

#[test]
fn a_ttl_below_the_least_is_raised_and_one_above_the_most_refused() {
    let most = 9_000_000_000;
    block_on(async {
        for (least, asked, granted) in [
            (2, 1, 2),
            (2, 0, 2),
            (2, -5, 2),
            (2, i64::MIN, 2),
            (2, 3, 3),
            (1, 0, 1),
            (1, most, most),
        ] {
            let store = MockStore::with_options(Options::default().with_min_lease_ttl(least));
            let lease = store.lease_grant(LEASE, asked).await.unwrap();
            assert_eq!(lease.ttl, granted, "asked for {asked}, least {least}");
            let left = store.lease_time_to_live(LEASE).await.unwrap();
            assert_eq!((left.ttl, left.granted_ttl), (granted, granted));
        }
        let answer = MockStore::new().lease_grant(LEASE, most + 1).await;
        assert_eq!(refusal(answer), KvErrorKind::InvalidArgument);
    });
}

#[test]
fn a_chosen_id_is_granted_once() {
    block_on(async {
        let store = MockStore::new();
        for id in [LeaseId(i64::MAX), LeaseId(-3), LEASE] {
            assert_eq!(store.lease_grant(id, 5).await.unwrap().id, id);
        }
        let again = refusal(store.lease_grant(LEASE, 5).await);
        assert_eq!(again, KvErrorKind::LeaseExists);
        let unnamed = refusal(store.lease_grant(LeaseId(0), 5).await);
        assert_eq!(unnamed, KvErrorKind::InvalidArgument);
        store.lease_revoke(LEASE).await.unwrap();
        store.lease_grant(LEASE, 5).await.unwrap();
    });
}

#[test]
fn an_unknown_lease_is_told_in_four_ways() {
    block_on(async {
        let store = MockStore::new();
        let put = store.put(PutRequest::new("a", "v").with_lease(LEASE)).await;
        assert_eq!(refusal(put), KvErrorKind::LeaseNotFound);
        assert_eq!(store.lease_keep_alive_once(LEASE).await.unwrap().ttl, 0);
        let left = store.lease_time_to_live(LEASE).await.unwrap();
        assert_eq!((left.ttl, left.granted_ttl), (-1, 0));
        let revoke = store.lease_revoke(LEASE).await;
        assert_eq!(refusal(revoke), KvErrorKind::LeaseNotFound);
    });
}

#[test]
fn time_to_live_counts_whole_seconds_and_names_the_keys() {
    block_on(async {
        let store = with_lease(3).await;
        let request = PutRequest::new("0", "v").with_lease(LEASE);
        store.put(request).await.unwrap();
        store.advance(101);
        let left = store.lease_time_to_live(LEASE).await.unwrap();
        assert_eq!((left.ttl, left.granted_ttl), (1, 3));
        assert_eq!(left.keys, ["0", "a"]);
    });
}

#[test]
fn a_lease_ends_at_its_deadline_and_a_keepalive_moves_it() {
    block_on(async {
        let store = with_lease(2).await;
        store.advance(199);
        assert_eq!(store.lease_keep_alive_once(LEASE).await.unwrap().ttl, 2);
        store.advance(199);
        assert!(read(&store, "a").await.is_some());
        store.tick();
        assert!(read(&store, "a").await.is_none());
        assert_eq!(store.lease_keep_alive_once(LEASE).await.unwrap().ttl, 0);
    });
}

#[test]
fn a_put_does_not_renew_its_lease() {
    block_on(async {
        let store = with_lease(2).await;
        store.advance(150);
        let request = PutRequest::new("a", "v").with_lease(LEASE);
        store.put(request).await.unwrap();
        store.advance(50);
        assert!(read(&store, "a").await.is_none());
    });
}

#[test]
fn a_key_hangs_on_the_lease_of_its_last_put() {
    block_on(async {
        for (lease, survives, bound) in [
            (Lease::Detached, true, None),
            (Lease::Attached(OTHER), true, Some(OTHER)),
            (Lease::Kept, false, Some(LEASE)),
            (Lease::Attached(LEASE), false, Some(LEASE)),
        ] {
            let store = with_lease(5).await;
            store.lease_grant(OTHER, 5).await.unwrap();
            let request = PutRequest {
                lease,
                ..PutRequest::new("a", "w")
            };
            store.put(request).await.unwrap();
            assert_eq!(read(&store, "a").await.unwrap().lease, bound);
            let keys = store.lease_time_to_live(LEASE).await.unwrap().keys;
            assert_eq!(keys.is_empty(), survives, "{lease:?}");
            store.lease_revoke(LEASE).await.unwrap();
            assert_eq!(read(&store, "a").await.is_some(), survives, "{lease:?}");
        }
    });
}

#[test]
fn only_a_key_that_exists_keeps_its_lease() {
    block_on(async {
        let request = PutRequest {
            lease: Lease::Kept,
            ..PutRequest::new("none", "v")
        };
        let store = MockStore::new();
        let put = store.put(request.clone()).await;
        assert_eq!(refusal(put), KvErrorKind::InvalidArgument);
        let txn = Txn::default().then([PutRequest::new("a", "v").into(), request.into()]);
        assert_eq!(refusal(store.txn(txn).await), KvErrorKind::InvalidArgument);
        assert_eq!(store.revision(), 1);
    });
}

#[test]
fn a_deleted_key_does_not_come_back_to_its_lease() {
    block_on(async {
        let store = with_lease(5).await;
        store.delete(DeleteRequest::key("a")).await.unwrap();
        store.put(PutRequest::new("a", "w")).await.unwrap();
        store.lease_revoke(LEASE).await.unwrap();
        assert!(read(&store, "a").await.is_some());
    });
}

#[test]
fn comparisons_see_the_lease() {
    block_on(async {
        let store = with_lease(5).await;
        for (lease, same) in [(LEASE, true), (OTHER, false)] {
            let txn = Txn::when([Compare::lease("a", lease)]);
            assert_eq!(store.txn(txn).await.unwrap().succeeded, same);
        }
    });
}

#[test]
fn a_revoke_deletes_all_keys_of_the_lease_in_one_revision() {
    block_on(async {
        let store = with_lease(5).await;
        for key in ["c", "b"] {
            let request = PutRequest::new(key, "v").with_lease(LEASE);
            store.put(request).await.unwrap();
        }
        let all = WatchRequest::new(KeyRange::prefix(""));
        let mut watch = store.watch(all).await.unwrap();
        store.lease_revoke(LEASE).await.unwrap();
        let (responses, _) = drain(&mut watch);
        assert_eq!(responses.len(), 1);
        let events = &responses[0].as_ref().unwrap().events;
        let seen: Vec<_> = events.iter().map(|event| event.kv.key.clone()).collect();
        assert_eq!(seen, ["a", "b", "c"]);
    });
}

#[test]
fn every_expired_lease_has_a_revision_of_its_own() {
    block_on(async {
        let store = with_lease(2).await;
        store.lease_grant(OTHER, 2).await.unwrap();
        for key in ["b", "c"] {
            let request = PutRequest::new(key, "v").with_lease(OTHER);
            store.put(request).await.unwrap();
        }
        store.lease_grant(LeaseId(9), 2).await.unwrap();
        let all = WatchRequest::new(KeyRange::prefix(""));
        let mut watch = store.watch(all).await.unwrap();
        let before = store.revision();
        store.advance(200);
        assert_eq!(store.revision(), before + 2, "one of three had no keys");
        let (responses, _) = drain(&mut watch);
        let seen: Vec<_> = responses
            .into_iter()
            .map(|response| {
                let response = response.unwrap();
                let deleted = |event: &WatchEvent| event.kind == EventKind::Delete;
                assert!(response.events.iter().all(deleted));
                (response.header.revision, response.events.len())
            })
            .collect();
        assert_eq!(seen, [(before + 1, 1), (before + 2, 2)]);
    });
}

#[test]
fn leases_end_in_the_order_of_their_deadlines_however_far_time_jumps() {
    block_on(async {
        let store = with_lease(3).await;
        put_leased(&store, "b", OTHER, 2).await;
        let all = WatchRequest::new(KeyRange::prefix(""));
        let mut watch = store.watch(all).await.unwrap();
        store.advance(1_000_000);
        let (responses, _) = drain(&mut watch);
        let first = responses[0].as_ref().unwrap();
        assert_eq!(first.events[0].kv.key, "b");
        assert_eq!(responses.len(), 2);
    });
}

#[test]
fn a_keepalive_stream_keeps_its_lease_and_ends_with_its_client() {
    block_on(async {
        let store = with_lease(2).await;
        let period = Duration::from_millis(995);
        let mut stream = store.lease_keep_alive(LEASE, period).await.unwrap();
        store.advance(1000);
        assert!(read(&store, "a").await.is_some());
        let (answers, ended) = drain(&mut stream);
        assert_eq!(
            (answers.len(), ended),
            (11, false),
            "at once, and ten times"
        );
        assert!(
            answers
                .iter()
                .all(|answer| answer.as_ref().unwrap().ttl == 2)
        );

        drop(stream);
        assert_eq!(store.open_streams(), 0);
        store.advance(199);
        assert!(read(&store, "a").await.is_some());
        store.tick();
        assert!(read(&store, "a").await.is_none());
    });
}

#[test]
fn a_keepalive_stream_of_an_ended_lease_says_0() {
    block_on(async {
        let store = with_lease(2).await;
        let period = Duration::from_secs(1);
        let mut stream = store.lease_keep_alive(LEASE, period).await.unwrap();
        store.lease_revoke(LEASE).await.unwrap();
        store.advance(100);
        let ttls: Vec<_> = drain(&mut stream)
            .0
            .into_iter()
            .map(|answer| answer.unwrap().ttl)
            .collect();
        assert_eq!(ttls, [2, 0]);
    });
}

#[test]
fn a_lease_whose_keepalive_comes_too_late_is_over() {
    block_on(async {
        let store = with_lease(2).await;
        let period = Duration::from_secs(2);
        let mut stream = store.lease_keep_alive(LEASE, period).await.unwrap();
        store.advance(200);
        assert!(read(&store, "a").await.is_none());
        let (answers, _) = drain(&mut stream);
        assert_eq!(answers[1].as_ref().unwrap().ttl, 0);
    });
}

#[test]
fn unread_answers_to_keepalives_do_not_pile_up() {
    block_on(async {
        let store = with_lease(2).await;
        let period = Duration::from_secs(1);
        let mut stream = store.lease_keep_alive(LEASE, period).await.unwrap();
        store.advance(100_000);
        assert_eq!(drain(&mut stream).0.len(), 16);
    });
}
