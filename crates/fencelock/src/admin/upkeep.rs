//! What only some stores offer their operators, and all of this project do.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::Stream;
use lock_spi::{
    FencingToken, Finding, LockKey, LockStore, Migration, RecoverRequest, Recovery, RecoveryId,
    SessionInfo, StoreAdmin, WaiterInfo,
};

use super::{Admin, entries};
use crate::error::{Error, Result};

impl Admin {
    /// Lists the open sessions, in the store's own order.
    ///
    /// # Errors
    ///
    /// Each item may be an error of the store; after one the list ends.
    pub fn sessions(&self) -> impl Stream<Item = Result<SessionInfo>> + Send + 'static + use<> {
        let store = Arc::clone(&self.store);
        entries(move |page| {
            let store = Arc::clone(&store);
            async move { of(&*store)?.sessions(page).await }
        })
    }

    /// Lists who waits for a key, first in line first.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a bad key, and those of the store.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn waiters<K>(&self, key: K) -> Result<Vec<WaiterInfo>>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        Ok(of(&*self.store)?.waiters(&key.try_into()?).await?)
    }

    /// Looks for what an operator should know of the store and this namespace.
    ///
    /// What keeps a client from connecting at all is found by
    /// [`Installation::examine`](crate::Installation::examine).
    ///
    /// # Errors
    ///
    /// Those of the store. What can be found out is a finding, not an error.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn diagnose(&self) -> Result<Vec<Finding>> {
        Ok(of(&*self.store)?.diagnose().await?)
    }

    /// Compares the stored format with the one that this build speaks.
    ///
    /// # Errors
    ///
    /// Those of the store.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn migration(&self) -> Result<Migration> {
        Ok(of(&*self.store)?.migration().await?)
    }

    /// Brings the stored format up to this build's. Repeated, it is fine.
    ///
    /// # Errors
    ///
    /// `Incompatible` when the stored format is newer than this build's, and those of the store.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end. Queue place: none.
    pub async fn migrate(&self) -> Result<Migration> {
        Ok(of(&*self.store)?.migrate().await?)
    }

    /// Clears away what is dead, at most `limit` entries: sessions that are closed or expired, their
    /// places and grants, and what was remembered of them for long enough. Fewer than `limit` says
    /// that nothing is left for now. No lock waits for it; a store that keeps tables grows without.
    ///
    /// A store that expires by itself, as etcd and the embedded one do, answers 0.
    ///
    /// # Errors
    ///
    /// `Denied` for a role of Postgres that may not clear up, and those of the store. When the effect
    /// is `Unknown`, some of it may be done.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end. Queue place: none.
    pub async fn reap_expired(&self, limit: u32) -> Result<u32> {
        Ok(self.store.reap_expired(limit).await?)
    }

    /// Prepares a recovery, after a restore or a fail-over that lost writes: it ends every session,
    /// grant and place of the namespace, keeps it closed for `hold_off`, and raises the term, so that
    /// every later token is above every earlier one. Nothing happens before
    /// [`send`](Recover::send).
    ///
    /// The hold-off is no shorter than the longest ttl in use: holders of the lost history believe
    /// until their deadlines.
    pub fn recover(&self, hold_off: Duration) -> Recover {
        Recover {
            store: Arc::clone(&self.store),
            request: RecoverRequest {
                id: RecoveryId::random(&*self.runtime),
                above: None,
                hold_off,
            },
        }
    }
}

/// A recovery that is being prepared; made by [`Admin::recover`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before it is sent"]
pub struct Recover {
    store: Arc<dyn LockStore>,
    request: RecoverRequest,
}

impl Recover {
    /// Names the highest token that anyone knows of, resources included; every later one is above it.
    pub fn above(mut self, token: FencingToken) -> Self {
        self.request.above = Some(token);
        self
    }

    /// Goes on with the recovery of this id instead of beginning a new one.
    pub fn again(mut self, id: RecoveryId) -> Self {
        self.request.id = id;
        self
    }

    /// The id by which it can be gone on with.
    #[must_use]
    pub fn id(&self) -> RecoveryId {
        self.request.id
    }

    /// Begins the recovery, or goes on with it. Send clones of it until `closed_for` is zero: only
    /// then the namespace is open again.
    ///
    /// # Errors
    ///
    /// `Exhausted` when the term is at its end, and those of the store. When the effect is `Unknown`,
    /// send a clone again: it is the same recovery.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end; send a clone again to
    /// go on. Queue place: all are lost.
    pub async fn send(self) -> Result<Recovery> {
        Ok(of(&*self.store)?.recover(self.request).await?)
    }
}

fn of(store: &dyn LockStore) -> lock_spi::Result<&dyn StoreAdmin> {
    store.admin().ok_or_else(|| {
        lock_spi::Error::new(
            lock_spi::ErrorKind::InvalidRequest,
            lock_spi::Effect::None,
            "this store offers nothing to operators",
        )
    })
}
