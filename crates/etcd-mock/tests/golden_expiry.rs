//! What was measured on real etcd, of the time between a lease's end and its deletion.

mod support;

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{KeyRange, KvErrorKind, LeaseId, MetadataStore, PutRequest, WatchRequest};
use etcd_mock::{
    CallId, Effect, Engine, Event, Expiry, LeaseGrantRequest, MockStore, Options, Request, Response,
};
use futures_util::StreamExt;
use sim_runtime::World;
use support::{block_on, drain, put_leased, read, refusal};

const LEASE: LeaseId = LeaseId(7);
const PERIOD: Duration = Duration::from_secs(1);

fn options() -> Options {
    Options::default().with_expiry(Expiry::Scanned)
}

/// A store 10 ms after a scan, with a lease of two seconds and a key on it: the lease is over 10 ms
/// after a scan too, and ends 490 ms late.
async fn with_lease() -> MockStore {
    let store = MockStore::with_options(options());
    store.advance(1);
    put_leased(&store, "a", LEASE, 2).await;
    store
}

#[test]
fn a_lease_ends_at_the_first_scan_after_its_deadline() {
    block_on(async {
        let store = with_lease().await;
        store.advance(249);
        assert!(read(&store, "a").await.is_none(), "tick 250 is a scan");

        let store = with_lease().await;
        store.advance(248);
        assert!(read(&store, "a").await.is_some(), "48 ticks late");
        store.lease_grant(LeaseId(8), 2).await.unwrap();
        store.advance(10_000);
        assert_eq!(store.lease_time_to_live(LEASE).await.unwrap().ttl, -1);
    });
}

#[test]
fn a_lease_that_is_over_stands_until_then_with_all_that_hangs_on_it() {
    block_on(async {
        let store = with_lease().await;
        store.advance(220);
        let left = store.lease_time_to_live(LEASE).await.unwrap();
        assert_eq!((left.ttl, left.granted_ttl), (0, 2));
        assert_eq!(left.keys, ["a"]);
        let put = PutRequest::new("b", "v").with_lease(LEASE);
        store.put(put).await.unwrap();
        let again = refusal(store.lease_grant(LEASE, 5).await);
        assert_eq!(again, KvErrorKind::LeaseExists);

        store.advance(29);
        assert!(read(&store, "a").await.is_none());
        assert!(read(&store, "b").await.is_none());
    });
}

#[test]
fn a_scan_ends_500_leases_at_most_the_oldest_first() {
    block_on(async {
        let store = MockStore::with_options(options());
        for id in 1..=600 {
            let lease = LeaseId(id);
            store.lease_grant(lease, 2).await.unwrap();
        }
        let standing = async |store: &MockStore| {
            let mut standing = 0;
            for id in 1..=600 {
                let left = store.lease_time_to_live(LeaseId(id)).await.unwrap();
                standing += u32::from(left.ttl >= 0);
            }
            standing
        };
        store.advance(200);
        assert_eq!(standing(&store).await, 100);
        store.advance(49);
        assert_eq!(standing(&store).await, 100);
        store.tick();
        assert_eq!(standing(&store).await, 0);
    });
}

#[test]
fn a_keepalive_of_a_lease_that_is_over_is_answered_0_once_it_has_ended() {
    let world = World::new(1);
    let runtime = world.runtime("client");
    let store = MockStore::in_step_with_options(Arc::clone(&runtime), options());
    let begin = runtime.now();
    world.block_on(async {
        runtime.sleep(Duration::from_millis(10)).await;
        put_leased(&store, "a", LEASE, 2).await;
        runtime.sleep(Duration::from_millis(2200)).await;
        let answer = store.lease_keep_alive_once(LEASE).await.unwrap();
        assert_eq!(answer.ttl, 0);
        assert!(read(&store, "a").await.is_none());
        assert_eq!(store.open_streams(), 0);
    });
    let passed = runtime.now().saturating_since(begin);
    assert_eq!(passed, Duration::from_millis(2500));
}

#[test]
fn a_keepalive_that_waits_for_the_end_breaks_off_with_the_server() {
    block_on(async {
        let store = with_lease().await;
        store.advance(220);
        let mut keep_alive = std::pin::pin!(store.lease_keep_alive_once(LEASE));
        let first = futures_util::future::poll_immediate(&mut keep_alive).await;
        assert!(first.is_none(), "it waits");
        store.restart();
        let answer = keep_alive.await;
        assert_eq!(refusal(answer), KvErrorKind::Unavailable);
        assert!(read(&store, "a").await.is_some());
    });
}

#[test]
fn a_keepalive_stream_does_not_revive_a_lease_that_is_over() {
    block_on(async {
        let store = with_lease().await;
        store.advance(220);
        let mut stream = store.lease_keep_alive(LEASE, PERIOD).await.unwrap();
        assert!(drain(&mut stream).0.is_empty());
        store.advance(29);
        let (answers, ended) = drain(&mut stream);
        assert_eq!((answers.len(), ended), (1, false));
        assert_eq!(answers[0].as_ref().unwrap().ttl, 0);
    });
}

#[test]
fn a_keepalive_of_a_lease_that_is_over_cannot_be_applied_before_the_end() {
    let mut engine = Engine::new(options());
    let call = CallId(1);
    let request = Request::LeaseGrant(LeaseGrantRequest { id: LEASE, ttl: 2 });
    for event in [
        Event::Advance { ticks: 1 },
        Event::Send { call, request },
        Event::Apply(call),
        Event::Advance { ticks: 220 },
    ] {
        assert!(engine.step(event).is_empty());
    }
    let call = CallId(2);
    let request = Request::LeaseKeepAliveOnce(LEASE);
    let mut tries = Vec::new();
    for ticks in [0, 28, 1] {
        let request = request.clone();
        for event in [
            Event::Advance { ticks },
            Event::Send { call, request },
            Event::Apply(call),
            Event::Reply(call),
        ] {
            assert!(engine.step(event).is_empty());
        }
        tries.push(engine.step(Event::Deliver(call)));
    }
    let ttls: Vec<_> = tries.iter().map(|effects| ttl(effects)).collect();
    assert_eq!(ttls, [None, None, Some(0)]);
}

/// The ttl that a keepalive was answered with.
fn ttl(effects: &[Effect]) -> Option<i64> {
    match effects {
        [
            Effect::Delivered {
                answer: Ok(Response::LeaseKeepAliveOnce(answer)),
                ..
            },
        ] => Some(answer.ttl),
        _ => None,
    }
}

#[test]
fn after_a_restart_leases_last_in_full_and_streams_are_broken_off() {
    block_on(async {
        let store = with_lease().await;
        let all = WatchRequest::new(KeyRange::prefix(""));
        let mut watch = store.watch(all).await.unwrap();
        let before = store.lease_time_to_live(LEASE).await.unwrap().header;
        store.advance(150);
        store.restart();
        let after = store.lease_time_to_live(LEASE).await.unwrap();
        assert_eq!(after.ttl, 2);
        assert_eq!(after.header.revision, before.revision);
        assert!(after.header.raft_term > before.raft_term);
        let broken = watch.next().await.unwrap();
        assert_eq!(refusal(broken), KvErrorKind::Unavailable);
    });
}
