//! What an observer is told, and what an election does to leases.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_kv::{EventKind, LeaseId, MetadataStore, PutRequest};
use etcd_mock::{Fact, MockStore};
use futures_util::FutureExt;

const LEASE: LeaseId = LeaseId(7);

fn observed() -> (MockStore, Arc<Mutex<Vec<Fact>>>) {
    let store = MockStore::new();
    let told: Arc<Mutex<Vec<Fact>>> = Arc::default();
    let facts = Arc::clone(&told);
    store.observe(move |fact| facts.lock().unwrap().push(fact));
    store.lease_grant(LEASE, 5).now_or_never().unwrap().unwrap();
    let put = PutRequest::new("a", "1").with_lease(LEASE);
    store.put(put).now_or_never().unwrap().unwrap();
    (store, told)
}

#[test]
fn everything_that_becomes_true_is_told_with_what_was_before() {
    let (store, told) = observed();
    store.advance(100);
    let renewed = store.lease_keep_alive_once(LEASE).now_or_never().unwrap();
    assert_eq!(renewed.unwrap().ttl, 5);
    store.advance(500);
    let told = told.lock().unwrap().clone();
    let [granted, put, renewed, ended, deleted] = &told[..] else {
        panic!("{told:?}");
    };
    let (id, ttl) = (LEASE, 5);
    assert_eq!(
        *granted,
        Fact::LeaseGranted {
            id,
            ttl,
            until: 500
        }
    );
    assert!(matches!(put, Fact::Changed(events) if events[0].kind == EventKind::Put));
    assert_eq!(*renewed, Fact::LeaseRenewed { id, until: 600 });
    assert_eq!(*ended, Fact::LeaseEnded { id, expired: true });
    let Fact::Changed(events) = deleted else {
        panic!("{deleted:?}");
    };
    assert_eq!(events[0].prev_kv.as_ref().unwrap().value, "1");
}

#[test]
fn without_a_leader_no_lease_ends_and_the_next_one_gives_it_its_full_time() {
    let (store, told) = observed();
    store.advance(400);
    store.step_down();
    store.advance(1000);
    assert_eq!(store.entries().len(), 1);
    store.elect(Duration::from_secs(1));
    let until = 1400 + 100 + 500;
    assert_eq!(store.leases(), [(LEASE, 5, until)]);
    store.advance(599);
    assert_eq!(store.entries().len(), 1);
    store.tick();
    assert!(store.entries().is_empty());
    let renewed = Fact::LeaseRenewed { id: LEASE, until };
    assert!(told.lock().unwrap().contains(&renewed));
}
