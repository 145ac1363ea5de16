//! What the suite needs of a deployment, on any server of etcd's shape.

use std::sync::Arc;

use async_trait::async_trait;
use etcd_kv::{DeleteRequest, LeaseId, MetadataStore, PutRequest, RangeRequest};
use lock_spi::{FencingToken, LockKey, Namespace, Runtime, SessionId};
use parity_tests::{Connection, Deployment, FaultPort};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sim_runtime::{Faults, Faulty, Weather};
use store_etcd::{EtcdConfig, EtcdLockStore};

/// Everything that a stored key spells out.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// One namespace on a server, behind networks that fail on demand.
pub(crate) struct EtcdDeployment<M> {
    /// The clock of the scenario, which is that of its server.
    pub(crate) runtime: Arc<dyn Runtime>,
    /// The operator's own way to the server.
    pub(crate) server: M,
    /// Which no one has used before.
    pub(crate) namespace: Namespace,
    /// Between every store object and the server.
    pub(crate) weather: Weather,
    /// Of a new process.
    pub(crate) process: Box<dyn Fn() -> Arc<dyn Runtime> + Send + Sync>,
}

impl<M> EtcdDeployment<M> {
    fn root(&self) -> String {
        format!("/dlock/{}/", self.namespace)
    }

    /// The stored form of a key in one of the namespace's families.
    fn stored(&self, family: &str, key: &LockKey) -> String {
        let key = utf8_percent_encode(key.as_str(), ENCODED);
        format!("{}{family}/{key}", self.root())
    }
}

#[async_trait]
impl<M: MetadataStore + Clone> Deployment for EtcdDeployment<M> {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    async fn connect(&self) -> Connection {
        let runtime = (self.process)();
        let server = self.server.clone();
        let network = Faulty::new(server, Arc::clone(&runtime), self.weather.clone());
        let faults = Arc::new(Network(network.faults()));
        let config = EtcdConfig::new(self.namespace.clone());
        let store = EtcdLockStore::open(network, runtime, config).await;
        Connection {
            store: Arc::new(store.expect("the server answers")),
            faults: Some(faults),
        }
    }

    async fn end_session(&self, session: SessionId) {
        let revoked = self.server.lease_revoke(LeaseId(session.as_i64())).await;
        revoked.expect("a session that is open");
    }

    async fn delete_lock(&self, key: &LockKey) {
        let request = DeleteRequest::key(self.stored("lock", key));
        let answer = self.server.delete(request).await.expect("an answer");
        assert_eq!(answer.deleted, 1, "a lock that is held");
    }

    async fn raise_floor(&self, key: &LockKey, floor: FencingToken) {
        let value = format!("{:020}", floor.as_u64());
        let request = PutRequest::new(self.stored("floor", key), value);
        self.server.put(request).await.expect("an answer");
    }

    async fn residue(&self) -> Vec<String> {
        let root = self.root();
        let all = RangeRequest {
            keys_only: true,
            ..RangeRequest::prefix(root.clone())
        };
        let answer = self.server.range(all).await.expect("an answer");
        let names: Vec<_> = answer
            .kvs
            .iter()
            .map(|kv| String::from_utf8_lossy(&kv.key).into_owned())
            .collect();
        let is_residue = |name: &&String| match name[root.len()..].split_once('/') {
            Some(("lock" | "wait" | "session", _)) => true,
            // The other half of a session: it counts where the first has gone.
            Some(("epoch", id)) => !names.contains(&format!("{root}session/{id}")),
            _ => false,
        };
        names.iter().filter(is_residue).cloned().collect()
    }
}

/// The network between one store object and the server.
struct Network(Faults);

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

impl FaultPort for Network {
    fn lose_next_replies(&self, count: u32) {
        self.0.lose_next_replies(count);
    }

    fn lose_next_requests(&self, count: u32) {
        self.0.lose_next_requests(count);
    }

    fn hold_requests(&self) {
        self.0.hold_requests();
    }

    fn release_requests(&self) {
        self.0.release_requests();
    }

    fn partition(&self) {
        self.0.partition();
    }

    fn heal(&self) {
        self.0.lose_next_replies(0);
        self.0.lose_next_requests(0);
        self.0.release_requests();
        self.0.heal();
    }
}
