use std::sync::{Arc, Mutex, PoisonError};

use etcd_kv::MetadataStore;
use lock_spi::{LockStore, Runtime};
use parity_tests::liars::Lying;

use super::careless::Careless;
use super::lax::Lax;
use super::{Bug, ClusterBug};

/// A bug in one run, or none. All clients of the run have it.
#[derive(Debug, Default)]
pub struct Planted {
    bug: Option<Bug>,
    /// What all liars of one deployment know together.
    first: Mutex<Option<Lying<Arc<dyn LockStore>>>>,
}

impl Planted {
    /// Plants a bug.
    #[must_use]
    pub const fn new(bug: Option<Bug>) -> Self {
        Self {
            bug,
            first: Mutex::new(None),
        }
    }

    /// What a client gets for its store.
    #[must_use]
    pub fn store(
        &self,
        store: Arc<dyn LockStore>,
        runtime: &Arc<dyn Runtime>,
    ) -> Arc<dyn LockStore> {
        match self.bug {
            Some(Bug::Store(bug)) => Arc::new(Careless::new(store, Arc::clone(runtime), bug)),
            Some(Bug::Lie(lie)) => {
                let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
                let runtime = Arc::clone(runtime);
                Arc::new(match &*first {
                    Some(first) => first.beside_on(store, runtime),
                    None => first.insert(Lying::new(store, Some(lie), runtime)).clone(),
                })
            }
            Some(Bug::Cluster(_) | Bug::Server(_)) | None => store,
        }
    }

    /// What a client's store gets for its cluster.
    #[must_use]
    pub fn server(&self, server: Arc<dyn MetadataStore>) -> Arc<dyn MetadataStore> {
        match self.bug {
            Some(Bug::Server(bug)) => Arc::new(Lax::new(server, bug)),
            _ => server,
        }
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
