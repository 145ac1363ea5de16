//! Who ends things from outside, unasked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_kv::{DeleteRequest, LeaseId, MetadataStore, RangeRequest};
use lock_spi::{FencingToken, LockStore, RevokeTarget, SessionId};
use sim_runtime::Faulty;

use super::Plan;
use super::history::Held;
use super::stage::Stage;
use super::told::Told;
use crate::common::Node;

pub(crate) struct Operator<M> {
    pub(crate) stage: Stage<M>,
    pub(crate) node: Node<Faulty<M>>,
    pub(crate) told: Arc<Mutex<Told>>,
    pub(crate) plan: Plan,
}

impl<M: MetadataStore + Clone> Operator<M> {
    /// For ever.
    pub(crate) async fn interfere(self) -> ! {
        self.node.kv.faults().set_weather(self.plan.weather.clone());
        loop {
            let runtime = &self.node.runtime;
            runtime.sleep(runtime.jitter(self.plan.pause * 6)).await;
            let key = if runtime.random().is_multiple_of(2) {
                "a"
            } else {
                "b"
            };
            match runtime.random() % 4 {
                0 => self.delete_lock(key).await,
                1 => self.end_session().await,
                _ => self.revoke(key).await,
            }
        }
    }

    async fn delete_lock(&self, key: &str) {
        let request = DeleteRequest::key(self.stage.name(&format!("lock/{key}")));
        let answer = self.stage.server.delete(request).await.unwrap();
        if answer.deleted > 0 {
            let mut told = self.told.lock().unwrap();
            told.by_hand.insert(answer.header.revision);
        }
    }

    /// Behind the back of whoever opened it.
    async fn end_session(&self) {
        let root = self.stage.name("session/");
        let sessions = self.stage.server.range(RangeRequest::prefix(root.clone()));
        let sessions = sessions.await.unwrap().kvs;
        let drawn = self.node.runtime.random() % u64::try_from(sessions.len().max(1)).unwrap();
        let Some(kv) = sessions.get(usize::try_from(drawn).unwrap()) else {
            return;
        };
        let id = std::str::from_utf8(&kv.key[root.len()..]).unwrap();
        let session: SessionId = id.parse().unwrap();
        self.told.lock().unwrap().ended.insert(session);
        // It may be gone by itself.
        drop(
            self.stage
                .server
                .lease_revoke(LeaseId(session.as_i64()))
                .await,
        );
    }

    /// The same revoke again until it is answered.
    async fn revoke(&self, key: &str) {
        let target = match self.standing(key).await {
            Some(token) if self.node.runtime.random().is_multiple_of(2) => {
                RevokeTarget::Grant(token)
            }
            _ => RevokeTarget::Whoever,
        };
        let request = self.node.revoke_request(key, target);
        while self.node.store.revoke(request.clone()).await.is_err() {
            self.node.runtime.sleep(Duration::from_millis(200)).await;
        }
    }

    async fn standing(&self, key: &str) -> Option<FencingToken> {
        let lock = RangeRequest::key(self.stage.name(&format!("lock/{key}")));
        let found = self.stage.server.range(lock).await.unwrap().kvs;
        found.first().map(|kv| Held::read(kv).token)
    }
}
