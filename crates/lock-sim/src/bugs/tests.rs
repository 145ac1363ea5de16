//! Bugs on the real store over one simulated etcd: each does what it is said to do, and without a
//! bug nothing of it happens.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{KeyValue, LeaseId, MetadataStore};
use etcd_mock::MockStore;
use lock_spi::{
    AttemptId, FencingToken, GrantRef, InsertOutcome, InsertRequest, KeepAliveRequest, LockKey,
    LockStore, Namespace, OpenSessionRequest, Owner, Payload, Queue, Runtime, SessionId, Ttl,
    WaitRequest,
};
use parity_tests::liars::Lie;
use sim_runtime::World;
use store_etcd::{EtcdConfig, EtcdLockStore};

use super::{Bug, Planted, ServerBug, StoreBug};

const SECOND: Duration = Duration::from_secs(1);
const TTL: u64 = 5;

struct Scene {
    world: World,
    runtime: Arc<dyn Runtime>,
    server: MockStore,
    planted: Planted,
}

/// A client's store, with a session.
struct Party {
    store: Arc<dyn LockStore>,
    runtime: Arc<dyn Runtime>,
    session: SessionId,
}

impl Scene {
    fn new(bug: impl Into<Option<Bug>>) -> Self {
        let world = World::new(7);
        Self {
            server: MockStore::in_step_with(world.runtime("server")),
            runtime: world.runtime("tests"),
            world,
            planted: Planted::new(bug.into()),
        }
    }

    fn play<T>(&self, work: impl Future<Output = T>) -> T {
        self.world.block_on(work)
    }

    async fn party(&self, number: i64) -> Party {
        let runtime = self.world.runtime(format!("party {number}"));
        let server: Arc<dyn MetadataStore> = Arc::new(self.server.clone());
        let server = self.planted.server(server);
        let config = EtcdConfig::new(Namespace::new("bugs").unwrap());
        let store = EtcdLockStore::open(server, Arc::clone(&runtime), config);
        let store = self.planted.store(Arc::new(store.await.unwrap()), &runtime);
        let session = SessionId::new(number).unwrap();
        let request = OpenSessionRequest {
            session,
            owner: Owner::new("tests").unwrap(),
            ttl: Ttl::from_secs(TTL).unwrap(),
        };
        store.open_session(request).await.unwrap();
        Party {
            store,
            runtime,
            session,
        }
    }

    fn lock(&self) -> Option<KeyValue> {
        let mut entries = self.server.entries().into_iter();
        entries.find(|kv| kv.key.ends_with(b"/lock/k"))
    }
}

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

impl Party {
    fn request(&self, attempt: u128, queue: Queue) -> InsertRequest {
        InsertRequest {
            key: key(),
            session: self.session,
            attempt: AttemptId::from_u128(attempt),
            payload: Payload::default(),
            queue,
        }
    }

    async fn insert(&self, attempt: u128, queue: Queue) -> InsertOutcome {
        self.store
            .try_insert(self.request(attempt, queue))
            .await
            .unwrap()
    }

    /// Is granted the lock.
    async fn lock(&self, attempt: u128) -> FencingToken {
        match self.insert(attempt, Queue::Never).await {
            InsertOutcome::Granted(grant) => grant.token,
            other => panic!("{other:?}"),
        }
    }

    async fn keep(&self, grants: &[FencingToken]) -> Option<Duration> {
        let grants = grants.iter().map(|&token| GrantRef { key: key(), token });
        let request = KeepAliveRequest {
            session: self.session,
            grants: grants.collect(),
            attempts: Vec::new(),
        };
        let kept = self.store.keep_alive(request).await.unwrap();
        kept.map(|kept| kept.remaining)
    }

    async fn release(&self, token: FencingToken) -> bool {
        self.store.delete_if_owner(&key(), token).await.unwrap()
    }
}

/// What the test shows with the bug, and without one.
fn with_and_without<T>(bug: Bug, test: impl Fn(Scene) -> T) -> (T, T) {
    (test(Scene::new(bug)), test(Scene::new(None)))
}

#[test]
fn a_lock_without_a_lease_is_bound_to_none() {
    let leases = with_and_without(Bug::Server(ServerBug::LocksWithoutALease), |scene| {
        scene.play(async {
            scene.party(1).await.lock(1).await;
            scene.lock().unwrap().lease
        })
    });
    assert_eq!(leases, (None, Some(LeaseId(1))));
}

#[test]
fn a_lock_that_is_not_compared_is_written_over() {
    let versions = with_and_without(Bug::Server(ServerBug::LocksWithoutComparing), |scene| {
        scene.play(async {
            let (one, other) = (scene.party(1).await, scene.party(2).await);
            one.lock(1).await;
            drop(other.insert(2, Queue::Never).await);
            scene.lock().unwrap().version
        })
    });
    assert_eq!(versions, (2, 1));
}

#[test]
fn an_unlock_that_compares_nothing_ends_what_another_holds() {
    let stands = with_and_without(Bug::Server(ServerBug::UnlocksWithoutComparing), |scene| {
        scene.play(async {
            let (one, other) = (scene.party(1).await, scene.party(2).await);
            let stale = one.lock(1).await;
            let lock = scene.lock().unwrap().key;
            let by_hand = etcd_kv::DeleteRequest::key(lock);
            scene.server.delete(by_hand).await.unwrap();
            other.lock(2).await;
            drop(one.store.delete_if_owner(&key(), stale).await);
            scene.lock().is_some()
        })
    });
    assert_eq!(stands, (false, true));
}

#[test]
fn whoever_comes_by_passes_a_queue_that_is_not_compared() {
    let granted = with_and_without(Bug::Server(ServerBug::BargesPastTheQueue), |scene| {
        scene.play(async {
            let (one, waiter) = (scene.party(1).await, scene.party(2).await);
            let token = one.lock(1).await;
            drop(waiter.insert(2, Queue::Join).await);
            one.release(token).await;
            let passer = scene.party(3).await;
            let outcome = passer.insert(3, Queue::Never).await;
            matches!(outcome, InsertOutcome::Granted(_))
        })
    });
    assert_eq!(granted, (true, false));
}

#[test]
fn a_keepalive_that_is_believed_keeps_what_is_gone() {
    let kept = with_and_without(Bug::Server(ServerBug::BelievesKeepAlives), |scene| {
        scene.play(async {
            let one = scene.party(1).await;
            one.keep(&[]).await.unwrap();
            // The session's own entry goes, and its lease stays.
            let entries = scene.server.entries();
            let session = entries
                .iter()
                .find(|kv| kv.key.starts_with(b"/dlock/bugs/session/"));
            let by_hand = etcd_kv::DeleteRequest::key(session.unwrap().key.clone());
            scene.server.delete(by_hand).await.unwrap();
            one.keep(&[]).await.is_some()
        })
    });
    assert_eq!(kept, (true, false));
}

#[test]
fn a_client_that_never_says_lost_keeps_a_session_that_is_gone() {
    let kept = with_and_without(Bug::Store(StoreBug::NeverSaysLost), |scene| {
        scene.play(async {
            let one = scene.party(1).await;
            scene.server.lease_revoke(LeaseId(1)).await.unwrap();
            one.keep(&[]).await
        })
    });
    assert_eq!(kept, (Some(SECOND * u32::try_from(TTL).unwrap()), None));
}

#[test]
fn a_deadline_that_counts_from_the_answer_is_the_whole_ttl() {
    let (with, without) = with_and_without(Bug::Store(StoreBug::CountsFromTheAnswer), |scene| {
        scene.play(async { scene.party(1).await.keep(&[]).await.unwrap() })
    });
    assert!(with >= SECOND * u32::try_from(TTL).unwrap(), "{with:?}");
    assert!(without <= with, "{without:?}");
}

#[test]
fn a_release_in_name_only_is_done_later_if_at_all() {
    let stood = with_and_without(Bug::Store(StoreBug::ReleasesInNameOnly), |scene| {
        scene.play(async {
            let one = scene.party(1).await;
            let token = one.lock(1).await;
            assert!(one.release(token).await);
            let stood = scene.lock().is_some();
            scene.runtime.sleep(SECOND).await;
            assert!(scene.lock().is_none());
            stood
        })
    });
    assert_eq!(stood, (true, false));
}

#[test]
fn a_release_that_is_repeated_ends_the_next_grant() {
    let stands = with_and_without(Bug::Store(StoreBug::RepeatsReleases), |scene| {
        scene.play(async {
            let (one, other) = (scene.party(1).await, scene.party(2).await);
            let token = one.lock(1).await;
            one.release(token).await;
            other.lock(2).await;
            scene.runtime.sleep(SECOND).await;
            scene.lock().is_some()
        })
    });
    assert_eq!(stands, (false, true));
}

#[test]
fn a_waiter_that_watches_from_now_misses_what_was_released_before() {
    let woken = with_and_without(Bug::Store(StoreBug::WatchesFromNow), |scene| {
        scene.play(async {
            let (one, waiter) = (scene.party(1).await, scene.party(2).await);
            let token = one.lock(1).await;
            let InsertOutcome::Queued(place) = waiter.insert(2, Queue::Join).await else {
                panic!("not queued")
            };
            one.release(token).await;
            let wait = waiter.store.await_release(WaitRequest {
                key: key(),
                session: waiter.session,
                attempt: AttemptId::from_u128(2),
                place: Some(place),
            });
            let woken = waiter.runtime.timeout(SECOND, wait).await.is_ok();
            let outcome = waiter.insert(2, Queue::Join).await;
            let granted = matches!(outcome, InsertOutcome::Granted(_));
            assert_eq!(woken, granted);
            granted
        })
    });
    assert_eq!(woken, (false, true));
}

#[test]
fn what_was_called_off_stands_where_it_is_not_undone() {
    let stands = with_and_without(Bug::Store(StoreBug::ForgetsToAbandon), |scene| {
        scene.play(async {
            let one = scene.party(1).await;
            one.lock(1).await;
            let attempt = AttemptId::from_u128(1);
            one.store
                .abandon(&key(), one.session, attempt)
                .await
                .unwrap();
            one.keep(&[]).await.unwrap();
            scene.lock().is_some()
        })
    });
    assert_eq!(stands, (true, false));
}

#[test]
fn liars_of_one_run_lie_together() {
    let scene = Scene::new(Bug::Lie(Lie::SharesAmongOneOwner));
    let (one, other) = scene.play(async {
        let (one, other) = (scene.party(1).await, scene.party(2).await);
        (one.lock(1).await, other.lock(2).await)
    });
    assert_eq!(one, other, "both have the same owner");
}
