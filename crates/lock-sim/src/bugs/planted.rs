use std::sync::Arc;

use etcd_kv::MetadataStore;
use lock_spi::{LockStore, Runtime};

use super::{Bug, ClusterBug};

/// A bug in one run, or none. All clients of the run have it.
#[derive(Debug, Default)]
pub struct Planted {
    bug: Option<Bug>,
}

impl Planted {
    /// Plants a bug.
    #[must_use]
    pub const fn new(bug: Option<Bug>) -> Self {
        Self { bug }
    }

    /// What a client gets for its store.
    #[must_use]
    pub fn store(
        &self,
        store: Arc<dyn LockStore>,
        runtime: &Arc<dyn Runtime>,
    ) -> Arc<dyn LockStore> {
        let _ = (self.bug, runtime);
        store
    }

    /// What a client's store gets for its cluster.
    #[must_use]
    pub fn server(
        &self,
        server: Arc<dyn MetadataStore>,
        runtime: &Arc<dyn Runtime>,
    ) -> Arc<dyn MetadataStore> {
        let _ = (self.bug, runtime);
        server
    }

    /// What the cluster has a switch for.
    #[must_use]
    pub const fn cluster(&self) -> Option<ClusterBug> {
        match self.bug {
            Some(Bug::Cluster(bug)) => Some(bug),
            _ => None,
        }
    }
}
