//! Where a walk takes place: a server, and processes before it.

use std::sync::Arc;

use etcd_kv::{Consistency, MetadataStore, RangeRequest};
use lock_spi::{Namespace, Runtime};
use sim_runtime::{Faulty, Weather};
use store_etcd::{EtcdConfig, EtcdLockStore};

use crate::common::Node;

/// Makes a new process of a name.
pub(crate) type Processes = Arc<dyn Fn(&str) -> Arc<dyn Runtime> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Stage<M> {
    /// The way to the server that never fails.
    pub(crate) server: M,
    /// Which no one has used before.
    pub(crate) namespace: Namespace,
    pub(crate) process: Processes,
}

impl<M: MetadataStore + Clone> Stage<M> {
    pub(crate) fn runtime(&self, name: &str) -> Arc<dyn Runtime> {
        (self.process)(name)
    }

    /// A new process with a store object, in calm weather.
    pub(crate) async fn node(&self, name: &str) -> Node<Faulty<M>> {
        let runtime = self.runtime(name);
        let (server, clock) = (self.server.clone(), Arc::clone(&runtime));
        let kv = Faulty::new(server, clock, Weather::calm());
        let config = EtcdConfig::new(self.namespace.clone());
        let store = EtcdLockStore::open(kv.clone(), Arc::clone(&runtime), config).await;
        Node {
            store: store.unwrap(),
            kv,
            runtime,
        }
    }

    /// The stored form of a name below the namespace.
    pub(crate) fn name(&self, tail: &str) -> String {
        format!("/dlock/{}/{tail}", self.namespace)
    }

    pub(crate) async fn revision(&self) -> i64 {
        let nothing = self.name("nothing").into();
        let answer = self.server.get(nothing, Consistency::Linearizable).await;
        answer.unwrap().header.revision
    }

    /// What stands below the namespace that only a live attempt may have.
    pub(crate) async fn held(&self) -> Vec<String> {
        let mut held = Vec::new();
        for family in ["lock/", "wait/"] {
            let all = RangeRequest::prefix(self.name(family));
            let found = self.server.range(all).await.unwrap().kvs;
            let names = found.iter().map(|kv| String::from_utf8_lossy(&kv.key));
            held.extend(names.map(String::from));
        }
        held
    }
}
