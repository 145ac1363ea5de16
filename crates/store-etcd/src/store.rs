use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_kv::MetadataStore;
use lock_spi::{
    AttemptId, Capabilities, Descriptor, Expiry, FencingToken, Grant, InsertOutcome, InsertRequest,
    KeepAliveRequest, KeptAlive, KeyPrefix, LockInfo, LockKey, LockOutcome, LockStore,
    OpenSessionRequest, Page, PageRequest, Result, Revocation, RevokeRequest, Runtime, SessionId,
    SessionLease, StoreAdmin, TokenSource, WaitRequest, WakeUp,
};

use crate::config::EtcdConfig;
use crate::core::Core;
use crate::error::task_lost;
use crate::session::AtWork;
use crate::{adopt, insert, keep, open, read, release, renew, revoke, wait};

/// So many grants of one session end in one step of the server without holding up the rest.
const MAX_GRANTS_PER_SESSION: u32 = 10_000;

/// A [`LockStore`] on etcd, or on whatever has its shape.
///
/// Clones are handles to the same store object, which keeps the sessions that it opened.
///
/// A session is an etcd lease, and everything under it is bound to that lease, so the server itself
/// ends what is not renewed: [`reap_expired`](LockStore::reap_expired) has nothing to do and
/// answers 0. A grant's lock is never rewritten; its revision is the token's counter for as long as
/// the grant lives. Renewing writes nothing.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use etcd_mock::MockStore;
/// use sim_runtime::World;
/// use lock_spi::{
///     AttemptId, Error, InsertOutcome, InsertRequest, LockKey, LockStore, OpenSessionRequest, Owner,
///     Payload, Queue, SessionId, Ttl,
/// };
/// use store_etcd::{EtcdConfig, EtcdLockStore};
///
/// let world = World::new(0);
/// let runtime = world.runtime("node");
/// world.block_on(async {
///     let kv = MockStore::in_step_with(Arc::clone(&runtime));
///     let store = EtcdLockStore::open(kv, Arc::clone(&runtime), EtcdConfig::default()).await?;
///     let session = SessionId::random(&*runtime);
///     let (owner, ttl) = (Owner::new("worker")?, Ttl::DEFAULT);
///     store.open_session(OpenSessionRequest { session, owner, ttl }).await?;
///     let outcome = store
///         .try_insert(InsertRequest {
///             key: LockKey::new("orders/4711")?,
///             session,
///             attempt: AttemptId::random(&*runtime),
///             payload: Payload::default(),
///             queue: Queue::Never,
///         })
///         .await?;
///     assert!(matches!(outcome, InsertOutcome::Granted(_)));
///     Ok::<(), Error>(())
/// })
/// # .unwrap();
/// ```
pub struct EtcdLockStore<M>(Arc<Core<M>>);

impl<M> Clone for EtcdLockStore<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for EtcdLockStore<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLockStore")
            .field("namespace", self.0.config.namespace())
            .finish_non_exhaustive()
    }
}

impl<M: MetadataStore> EtcdLockStore<M> {
    /// Opens a namespace, and makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// `Incompatible` when the namespace is of a format that this build does not speak, and those
    /// of every call. A namespace that is closed for recovery, or whose cluster has gone back, can
    /// be opened: it is refused where something would be granted.
    ///
    /// # Cancel safety
    ///
    /// The namespace may be made although the future was dropped; that is fine.
    pub async fn open(kv: M, runtime: Arc<dyn Runtime>, config: EtcdConfig) -> Result<Self> {
        Ok(Self(Arc::new(Core::connect(kv, runtime, config).await?)))
    }

    pub(crate) fn core(&self) -> &Arc<Core<M>> {
        &self.0
    }

    /// Runs an operation to its end, whether or not its answer is awaited.
    pub(crate) async fn run_to_end<T, F>(&self, begin: impl FnOnce(Arc<Core<M>>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let operation = begin(Arc::clone(&self.0));
        self.0
            .runtime
            .run_to_end(operation)
            .await
            .map_err(task_lost)?
    }
}

#[async_trait]
impl<M: MetadataStore> LockStore for EtcdLockStore<M> {
    fn descriptor(&self) -> Descriptor {
        let config = &self.0.config;
        let mut capabilities = Capabilities::new(
            TokenSource::ClusterRevision,
            Expiry::ByItself,
            WakeUp::Watch,
            config.hand_over_bound(),
        );
        capabilities.ttl_granularity = Duration::from_secs(1);
        capabilities.max_grants_per_session = Some(MAX_GRANTS_PER_SESSION);
        Descriptor {
            name: "etcd",
            namespace: config.namespace().clone(),
            capabilities,
        }
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        self.run_to_end(|core| open::open_session(core, request))
            .await
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        self.run_to_end(|core| adopt::adopt_session(core, session))
            .await
    }

    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        // Attempts that are at work from here on are accounted for.
        let own = self.0.sessions.get(request.session);
        let since = own.map_or(0, |own| own.with_attempts(|attempts| attempts.now()));
        self.run_to_end(|core| keep::keep_alive(core, request, since))
            .await
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        self.run_to_end(|core| async move {
            let limit = core.config.request_timeout();
            core.close(session, limit).await
        })
        .await
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        // It is accounted for until its answer has arrived, however long that lies about.
        let own = self.0.sessions.get(request.session);
        let at_work = own.and_then(|own| AtWork::begin(&own, request.attempt, &request.key));
        let operation = self.run_to_end(|core| insert::try_insert(core, request));
        let outcome = operation.await;
        drop(at_work);
        outcome
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        wait::await_release(self.core(), &request).await
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        let key = key.clone();
        self.run_to_end(|core| renew::extend(core, key, token))
            .await
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        let key = key.clone();
        self.run_to_end(|core| release::delete_if_owner(core, key, token))
            .await
    }

    async fn abandon(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> Result<()> {
        let key = key.clone();
        self.run_to_end(|core| release::abandon(core, key, session, attempt))
            .await
    }

    async fn read(&self, key: &LockKey) -> Result<LockInfo> {
        read::read(self.core(), key).await
    }

    async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>> {
        read::list(self.core(), prefix, page).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
        self.run_to_end(|core| revoke::revoke(core, request)).await
    }

    async fn revocations(&self, key: &LockKey, page: PageRequest) -> Result<Page<Revocation>> {
        read::revocations(self.core(), key, page).await
    }

    /// Answers 0 and does nothing: every grant and place is bound to its session's lease, and the
    /// server ends leases by itself. Reaping here could only race it.
    async fn reap_expired(&self, _limit: u32) -> Result<u32> {
        Ok(0)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }
}
