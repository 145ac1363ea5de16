//! A deployment all of whose store objects tell the same lie.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use lock_spi::{FencingToken, LockKey, LockStore, Runtime, SessionId};

use super::{Lie, Lying};
use crate::fixture::{Connection, Deployment};

/// Wraps a deployment, so that scenarios are played on a liar.
///
/// What operators do by hand reaches the store as it is.
#[derive(Debug)]
pub struct LyingDeployment<D> {
    deployment: D,
    lie: Option<Lie>,
    first: Mutex<Option<Lying<Arc<dyn LockStore>>>>,
}

impl<D: Deployment> LyingDeployment<D> {
    /// All of `deployment` tells this lie; without one, none.
    #[must_use]
    pub const fn new(deployment: D, lie: Option<Lie>) -> Self {
        Self {
            deployment,
            lie,
            first: Mutex::new(None),
        }
    }
}

#[async_trait]
impl<D: Deployment> Deployment for LyingDeployment<D> {
    fn runtime(&self) -> Arc<dyn Runtime> {
        self.deployment.runtime()
    }

    async fn connect(&self) -> Connection {
        let Connection { store, faults } = self.deployment.connect().await;
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let lying = match &*first {
            Some(first) => first.beside(store),
            None => Lying::new(store, self.lie, self.deployment.runtime()),
        };
        first.get_or_insert_with(|| lying.clone());
        Connection {
            store: Arc::new(lying),
            faults,
        }
    }

    async fn end_session(&self, session: SessionId) {
        self.deployment.end_session(session).await;
    }

    async fn delete_lock(&self, key: &LockKey) {
        self.deployment.delete_lock(key).await;
    }

    async fn raise_floor(&self, key: &LockKey, floor: FencingToken) {
        self.deployment.raise_floor(key, floor).await;
    }

    async fn residue(&self) -> Vec<String> {
        self.deployment.residue().await
    }
}
