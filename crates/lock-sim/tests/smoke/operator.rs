//! What befalls the server and its keys: restarts, elections, compaction, and people who end grants.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{DeleteRequest, MetadataStore};
use etcd_mock::MockStore;
use lock_spi::{
    Instant, LockKey, LockStore, Namespace, Owner, Reason, RevocationId, RevokeRequest,
    RevokeTarget, Runtime,
};
use store_etcd::{EtcdConfig, EtcdLockStore};

use crate::ledger::Ledger;
use crate::scene::KEYS;

const LONGEST_LULL: Duration = Duration::from_secs(15);

pub(crate) struct Operator {
    runtime: Arc<dyn Runtime>,
    server: MockStore,
    /// Beside the server: without a network between.
    store: EtcdLockStore<MockStore>,
    ledger: Arc<Ledger>,
}

impl Operator {
    pub(crate) async fn start(
        runtime: Arc<dyn Runtime>,
        server: MockStore,
        ledger: Arc<Ledger>,
    ) -> Self {
        let config = EtcdConfig::new(Namespace::new("smoke").unwrap());
        let store = EtcdLockStore::open(server.clone(), Arc::clone(&runtime), config);
        Self {
            store: store.await.unwrap(),
            runtime,
            server,
            ledger,
        }
    }

    pub(crate) async fn work(self, until: Instant) {
        let mut raft_term = 10;
        loop {
            let lull = self.runtime.jitter(LONGEST_LULL);
            self.runtime.sleep(lull).await;
            if self.runtime.now() >= until {
                return;
            }
            let key = KEYS[usize::from(self.runtime.random().is_multiple_of(2))];
            match self.runtime.random() % 5 {
                0 => self.revoke(key).await,
                1 => self.delete(key).await,
                2 => {
                    raft_term += 1;
                    self.server.set_raft_term(raft_term);
                }
                3 => self.compact().await,
                _ => self.restart(),
            }
        }
    }

    async fn revoke(&self, key: &'static str) {
        let request = RevokeRequest {
            key: LockKey::new(key).unwrap(),
            target: RevokeTarget::Whoever,
            id: RevocationId::random(&*self.runtime),
            by: Owner::new("operator").unwrap(),
            reason: Reason::new("smoke").unwrap(),
        };
        match self.store.revoke(request).await {
            Ok(done) => {
                if let Some(ended) = done.previous_token {
                    self.ledger.ended_from_outside(key, ended);
                }
                self.ledger.make_known(key, done.new_token_floor.unwrap());
            }
            Err(error) => self.ledger.breach(format!("revoke {key}: {error}")),
        }
    }

    /// Deletes the lock behind everybody's back.
    async fn delete(&self, key: &'static str) {
        let witness = self.ledger.witness();
        if let Some(token) = witness.standing(key) {
            self.ledger.ended_from_outside(key, token);
            let request = DeleteRequest::key(witness.lock(key));
            self.server.delete(request).await.unwrap();
        }
    }

    async fn compact(&self) {
        self.ledger.witness().catch_up().await;
        // What was compacted before cannot be again.
        drop(self.server.compact(self.server.revision()).await);
    }

    /// Leases last their full ttl again, and streams break.
    fn restart(&self) {
        self.server.restore(&self.server.snapshot());
    }
}
