//! The wrapper: each method goes to the module that knows how to lie about it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lock_spi::{
    AttemptId, Descriptor, Effect, FencingToken, Grant, InsertOutcome, InsertRequest,
    KeepAliveRequest, KeptAlive, KeyPrefix, LockInfo, LockKey, LockOutcome, LockStore,
    OpenSessionRequest, Page, PageRequest, Result, Revocation, RevokeRequest, Runtime, SessionId,
    SessionLease, StoreAdmin, WaitRequest,
};

use super::Lie;
use super::memory::Memory;

/// A store that breaks one promise; without a [`Lie`], one that breaks none.
#[derive(Clone, Debug)]
pub struct Lying<S> {
    pub(super) store: S,
    pub(super) runtime: Arc<dyn Runtime>,
    lie: Option<Lie>,
    memory: Arc<Mutex<Memory>>,
}

impl<S: LockStore> Lying<S> {
    /// Wraps the first store object of a deployment.
    #[must_use]
    pub fn new(store: S, lie: Option<Lie>, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            store,
            runtime,
            lie,
            memory: Arc::default(),
        }
    }

    /// Wraps another store object of the same deployment, which tells the same lie.
    #[must_use]
    pub fn beside<T: LockStore>(&self, store: T) -> Lying<T> {
        self.beside_on(store, Arc::clone(&self.runtime))
    }

    /// The same for a store object of another process, with a runtime of its own.
    #[must_use]
    pub fn beside_on<T: LockStore>(&self, store: T, runtime: Arc<dyn Runtime>) -> Lying<T> {
        Lying {
            store,
            runtime,
            lie: self.lie,
            memory: Arc::clone(&self.memory),
        }
    }

    pub(super) fn tells(&self, lie: Lie) -> bool {
        self.lie == Some(lie)
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is told of an answer: of an error, perhaps too little.
    fn tell<T>(&self, answer: Result<T>) -> Result<T> {
        match self.tells(Lie::ClaimsNoEffect) {
            true => answer.map_err(|error| error.with_effect(Effect::None)),
            false => answer,
        }
    }
}

// A method that is forgotten here would never lie.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: LockStore + Clone> LockStore for Lying<S> {
    fn descriptor(&self) -> Descriptor {
        self.store.descriptor()
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        self.tell(self.open(request).await)
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        self.tell(self.adopt(session).await)
    }

    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        self.tell(self.keep(request).await)
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        self.tell(self.close(session).await)
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        self.tell(self.insert(request).await)
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        self.tell(self.wait(request).await)
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        self.tell(self.renew(key, token).await)
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        self.tell(self.release(key, token).await)
    }

    async fn abandon(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> Result<()> {
        self.tell(self.give_up(key, session, attempt).await)
    }

    async fn read(&self, key: &LockKey) -> Result<LockInfo> {
        self.tell(self.look(key).await)
    }

    async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>> {
        self.tell(self.look_through(prefix, page).await)
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
        self.tell(self.end_by_order(request).await)
    }

    async fn revocations(&self, key: &LockKey, page: PageRequest) -> Result<Page<Revocation>> {
        self.tell(self.records(key, page).await)
    }

    async fn reap_expired(&self, limit: u32) -> Result<u32> {
        self.tell(self.reap(limit).await)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.store.admin().map(|_| self as &dyn StoreAdmin)
    }
}
