//! One simulated cluster, store objects on it, and short ways to use them.
// Every test file uses a part of it.
#![allow(dead_code, unused_imports)]

mod postman;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{KeyValue, MetadataStore};
use etcd_mock::MockStore;
use lock_spi::{
    AttemptId, FencingToken, Grant, GrantRef, InsertOutcome, InsertRequest, KeepAliveRequest,
    KeptAlive, LockKey, LockStore, OpenSessionRequest, Owner, Payload, Place, Queue, Reason,
    Result, RevocationId, RevokeRequest, RevokeTarget, Runtime, SessionId, SessionLease, Ttl,
};
use sim_runtime::{Faulty, Weather, World};
use store_etcd::{EtcdConfig, EtcdLockStore};

pub(crate) use postman::{Order, Postman};

/// Of every session, unless a test says otherwise.
pub(crate) const TTL: Duration = Duration::from_secs(15);

/// A cluster in virtual time.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) server: MockStore,
    pub(crate) runtime: Arc<dyn Runtime>,
}

/// A store object, and the way from it to its cluster.
pub(crate) struct Node<M = Faulty<MockStore>> {
    pub(crate) store: EtcdLockStore<M>,
    pub(crate) kv: M,
    pub(crate) runtime: Arc<dyn Runtime>,
}

/// Tells a story in a few worlds, each with a fresh cluster.
pub(crate) fn simulate<F: Future<Output = Result<()>>>(story: impl Fn(Cluster) -> F) {
    for seed in 0..3 {
        let world = World::new(seed);
        let runtime = world.runtime("node");
        let server = MockStore::in_step_with(Arc::clone(&runtime));
        let told = world.block_on(story(Cluster { server, runtime }));
        told.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
    }
}

pub(crate) fn key(text: &str) -> LockKey {
    LockKey::new(text).unwrap()
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

impl Cluster {
    /// A new store object: another process.
    pub(crate) async fn node(&self) -> Node {
        let (server, runtime) = (self.server.clone(), Arc::clone(&self.runtime));
        self.node_on(Faulty::new(server, runtime, Weather::calm()))
            .await
    }

    /// A new store object, with a postman on its way.
    pub(crate) async fn node_with_postman(&self) -> Node<Postman> {
        self.node_on(Postman::new(self.server.clone())).await
    }

    pub(crate) async fn node_on<M: MetadataStore + Clone>(&self, kv: M) -> Node<M> {
        let runtime = Arc::clone(&self.runtime);
        let config = EtcdConfig::default();
        let store = EtcdLockStore::open(kv.clone(), Arc::clone(&runtime), config);
        Node {
            store: store.await.unwrap(),
            kv,
            runtime,
        }
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.runtime.sleep(duration).await;
    }

    /// What is stored under a name below the namespace.
    pub(crate) fn stored(&self, name: &str) -> Option<KeyValue> {
        let full = format!("/dlock/default/{name}");
        let mut entries = self.server.entries().into_iter();
        entries.find(|kv| kv.key == full)
    }

    /// The names that are stored below `prefix`, without it.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        let root = format!("/dlock/default/{prefix}");
        let entries = self.server.entries().into_iter();
        entries
            .filter_map(|kv| {
                let name = String::from_utf8(kv.key.to_vec()).unwrap();
                name.strip_prefix(&root).map(str::to_owned)
            })
            .collect()
    }

    /// Every lock and place must end with a session.
    pub(crate) fn assert_all_leased(&self) {
        for kv in self.server.entries() {
            let name = String::from_utf8(kv.key.to_vec()).unwrap();
            let tail = name.strip_prefix("/dlock/default/").unwrap();
            let bound = ["lock/", "wait/", "session/", "epoch/"];
            let must = bound.iter().any(|family| tail.starts_with(family));
            assert_eq!(kv.lease.is_some(), must, "{name}");
        }
    }
}

impl<M: MetadataStore> Node<M> {
    pub(crate) async fn open(&self, session: SessionId) -> Result<SessionLease> {
        let request = OpenSessionRequest {
            session,
            owner: Owner::new("worker").unwrap(),
            ttl: Ttl::new(TTL).unwrap(),
        };
        self.store.open_session(request).await
    }

    pub(crate) async fn session(&self) -> SessionId {
        let session = SessionId::random(&*self.runtime);
        self.open(session).await.unwrap().session
    }

    pub(crate) fn attempt(&self) -> AttemptId {
        AttemptId::random(&*self.runtime)
    }

    pub(crate) async fn insert(
        &self,
        session: SessionId,
        text: &str,
        attempt: AttemptId,
        queue: Queue,
    ) -> Result<InsertOutcome> {
        let request = InsertRequest {
            key: key(text),
            session,
            attempt,
            payload: Payload::default(),
            queue,
        };
        self.store.try_insert(request).await
    }

    /// Takes a lock that is free.
    pub(crate) async fn take(&self, session: SessionId, text: &str) -> (Grant, AttemptId) {
        let attempt = self.attempt();
        let outcome = self.insert(session, text, attempt, Queue::Never).await;
        (granted(outcome.unwrap()), attempt)
    }

    /// Takes a place for a lock that is held.
    pub(crate) async fn queue(&self, session: SessionId, text: &str) -> (Place, AttemptId) {
        let attempt = self.attempt();
        let outcome = self.insert(session, text, attempt, Queue::Join).await;
        (queued(outcome.unwrap()), attempt)
    }

    pub(crate) async fn keep(
        &self,
        session: SessionId,
        grants: &[&Grant],
        attempts: &[AttemptId],
    ) -> Result<Option<KeptAlive>> {
        let named = |grant: &&Grant| GrantRef {
            key: grant.key.clone(),
            token: grant.token,
        };
        let request = KeepAliveRequest {
            session,
            grants: grants.iter().map(named).collect(),
            attempts: attempts.to_vec(),
        };
        self.store.keep_alive(request).await
    }

    pub(crate) fn revoke_request(&self, text: &str, target: RevokeTarget) -> RevokeRequest {
        RevokeRequest {
            key: key(text),
            target,
            id: RevocationId::random(&*self.runtime),
            by: Owner::new("admin").unwrap(),
            reason: Reason::new("stuck").unwrap(),
        }
    }

    pub(crate) async fn holder(&self, text: &str) -> Option<FencingToken> {
        let info = self.store.read(&key(text)).await.unwrap();
        info.holder.map(|holder| holder.token)
    }
}

pub(crate) fn granted(outcome: InsertOutcome) -> Grant {
    match outcome {
        InsertOutcome::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

pub(crate) fn queued(outcome: InsertOutcome) -> Place {
    match outcome {
        InsertOutcome::Queued(place) => place,
        other => panic!("not queued: {other:?}"),
    }
}
