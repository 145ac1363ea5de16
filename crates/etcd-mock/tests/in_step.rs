//! A store whose time is a runtime's, in virtual time.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_kv::{EventKind, KeyRange, KvErrorKind, LeaseId, MetadataStore, PutRequest, WatchRequest};
use etcd_mock::{MockStore, TICK};
use futures_util::StreamExt;
use lock_spi::{BoxFuture, Instant, Runtime};
use sim_runtime::World;
use support::{put_leased, read, refusal};

const LEASE: LeaseId = LeaseId(7);

#[test]
fn watchers_learn_of_expiry_without_anybody_calling() {
    let world = World::new(1);
    let store = MockStore::in_step_with(world.runtime("store"));
    world.block_on(async {
        put_leased(&store, "a", LEASE, 3).await;
        let request = WatchRequest::new(KeyRange::key("a"));
        let mut watch = store.watch(request).await.unwrap();
        let response = watch.next().await.unwrap().unwrap();
        assert_eq!(response.events[0].kind, EventKind::Delete);
        assert_eq!(response.header.revision, 3);
    });
    assert_eq!(world.elapsed(), Duration::from_secs(3));
}

#[test]
fn a_shorter_lease_wakes_the_driver_that_sleeps_for_a_longer_one() {
    let world = World::new(2);
    let runtime = world.runtime("store");
    let store = MockStore::in_step_with(Arc::clone(&runtime));
    world.block_on(async {
        store.lease_grant(LeaseId(1), 3600).await.unwrap();
        runtime.sleep(Duration::from_secs(1)).await;
        put_leased(&store, "a", LEASE, 2).await;
        let request = WatchRequest::new(KeyRange::key("a"));
        store
            .watch(request)
            .await
            .unwrap()
            .next()
            .await
            .unwrap()
            .unwrap();
    });
    assert_eq!(world.elapsed(), Duration::from_secs(3));
}

#[test]
fn what_is_due_happens_before_the_call_that_comes_after_it() {
    let world = World::new(3);
    let runtime = world.runtime("store");
    let store = MockStore::in_step_with(Arc::clone(&runtime));
    world.block_on(async {
        put_leased(&store, "a", LEASE, 2).await;
        runtime.sleep(Duration::from_secs(2) - TICK).await;
        assert!(read(&store, "a").await.is_some());
        runtime.sleep(TICK).await;
        assert!(read(&store, "a").await.is_none());
    });
}

#[test]
fn a_lease_that_begins_between_two_ticks_does_not_end_before_its_time() {
    let world = World::new(6);
    let runtime = world.runtime("store");
    let store = MockStore::in_step_with(Arc::clone(&runtime));
    let ttl = Duration::from_secs(2);
    world.block_on(async {
        runtime.sleep(TICK / 2).await;
        put_leased(&store, "a", LEASE, 2).await;
        runtime.sleep(ttl / 2).await;
        store.lease_keep_alive_once(LEASE).await.unwrap();
        runtime.sleep(ttl - TICK / 4).await;
        assert!(read(&store, "a").await.is_some());
        runtime.sleep(TICK).await;
        assert!(read(&store, "a").await.is_none());
    });
}

#[test]
fn a_keepalive_stream_renews_every_period_and_ends_with_its_client() {
    let world = World::new(4);
    let runtime = world.runtime("store");
    let store = MockStore::in_step_with(Arc::clone(&runtime));
    world.block_on(async {
        put_leased(&store, "a", LEASE, 2).await;
        let period = Duration::from_secs(1);
        let mut stream = store.lease_keep_alive(LEASE, period).await.unwrap();
        for seconds in 0..5 {
            assert_eq!(stream.next().await.unwrap().unwrap().ttl, 2);
            assert_eq!(world.elapsed(), Duration::from_secs(seconds));
        }
        drop(stream);
        let request = WatchRequest::new(KeyRange::key("a"));
        store
            .watch(request)
            .await
            .unwrap()
            .next()
            .await
            .unwrap()
            .unwrap();
    });
    let last_renewal_and_ttl = Duration::from_secs(4 + 2);
    assert_eq!(world.elapsed(), last_renewal_and_ttl);
}

#[test]
fn streams_end_when_the_store_is_dropped() {
    let world = World::new(5);
    let runtime = world.runtime("store");
    let store = MockStore::in_step_with(Arc::clone(&runtime));
    world.block_on(async {
        put_leased(&store, "a", LEASE, 9).await;
        let request = WatchRequest::new(KeyRange::key("a"));
        let mut watch = store.watch(request).await.unwrap();
        let ended = runtime.run_to_end(async move {
            let error = refusal(watch.next().await.unwrap());
            (error, watch.next().await.is_none())
        });
        runtime.sleep(Duration::from_secs(1)).await;
        drop(store);
        assert_eq!(ended.await, Ok((KvErrorKind::Unavailable, true)));
    });
    assert_eq!(world.elapsed(), Duration::from_secs(1));
}

/// A runtime that counts its tasks.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn Runtime>,
    running: Arc<()>,
}

impl Runtime for Counting {
    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn wall_clock(&self) -> Duration {
        self.inner.wall_clock()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        self.inner.sleep_until(deadline)
    }

    fn spawn(&self, task: BoxFuture<()>) {
        let running = Arc::clone(&self.running);
        self.inner.spawn(Box::pin(async move {
            task.await;
            drop(running);
        }));
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }
}

#[test]
fn the_driver_ends_with_the_last_clone_even_if_a_lease_runs() {
    let world = World::new(6);
    let inner = world.runtime("store");
    let running = Arc::new(());
    let runtime = Arc::new(Counting {
        inner: Arc::clone(&inner),
        running: Arc::clone(&running),
    });
    let tasks = || Arc::strong_count(&running) - 2;
    world.block_on(async {
        let store = MockStore::in_step_with(runtime.clone());
        let clone = store.clone();
        let fork = store.fork();
        put_leased(&store, "a", LEASE, 3600).await;
        inner.sleep(TICK).await;
        drop(store);
        inner.sleep(TICK).await;
        assert_eq!(tasks(), 2);
        drop((clone, fork));
        inner.sleep(TICK).await;
        assert_eq!(tasks(), 0);
    });
}

#[test]
fn a_fork_keeps_the_time_and_goes_its_own_way() {
    let world = World::new(7);
    let runtime = world.runtime("store");
    let store = MockStore::in_step_with(Arc::clone(&runtime));
    world.block_on(async {
        put_leased(&store, "a", LEASE, 4).await;
        runtime.sleep(Duration::from_secs(1)).await;
        let fork = store.fork();
        store.lease_revoke(LEASE).await.unwrap();
        assert_eq!((store.revision(), fork.revision()), (3, 2));
        runtime.sleep(Duration::from_secs(2)).await;
        assert!(read(&fork, "a").await.is_some());
        runtime.sleep(Duration::from_secs(1)).await;
        assert!(read(&fork, "a").await.is_none());
    });
}

/// B196: one seed is one run, to the last answer.
#[test]
fn the_same_seed_gets_the_same_answers_in_the_same_order() {
    fn story(seed: u64) -> (u64, Vec<String>) {
        let world = World::new(seed);
        let store = MockStore::in_step_with(world.runtime("store"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        for node in 1..=4_i64 {
            let runtime = world.runtime(format!("node {node}"));
            let (store, heard, own) = (store.clone(), Arc::clone(&heard), Arc::clone(&runtime));
            runtime.spawn(Box::pin(async move {
                for round in 0..8 {
                    own.sleep(own.jitter(Duration::from_secs(1))).await;
                    let id = LeaseId(node * 100 + round);
                    let lease = store.lease_grant(id, 1).await.unwrap();
                    let request = PutRequest::new("a", "v").with_lease(id);
                    let put = store.put(request).await.unwrap();
                    let told = format!("{lease:?} {put:?}");
                    heard.lock().unwrap().push(told);
                }
            }));
        }
        world.block_on(world.runtime("end").sleep(Duration::from_secs(20)));
        let heard = heard.lock().unwrap().clone();
        assert_eq!(heard.len(), 32);
        (world.trace_hash(), heard)
    }
    assert_eq!(story(1), story(1));
    assert_ne!(story(1).1, story(2).1);
}
