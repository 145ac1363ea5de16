use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use lock_spi::{
    AttemptId, Capabilities, Descriptor, Expiry, FencingToken, Grant, InsertOutcome, InsertRequest,
    KeepAliveRequest, KeptAlive, KeyPrefix, LockInfo, LockKey, LockOutcome, LockStore,
    OpenSessionRequest, Page, PageRequest, Result, Revocation, RevokeRequest, Runtime, SessionId,
    SessionLease, StoreAdmin, TokenSource, WaitRequest, WakeUp,
};

use crate::client::PostgresClient;
use crate::config::PostgresConfig;
use crate::core::Core;
use crate::error::task_lost;
use crate::session::AtWork;
use crate::{adopt, close, insert, keep, open, read, reap, release, renew, revoke, wait};

/// A [`LockStore`] on PostgreSQL.
///
/// Clones are handles to the same store object, which keeps the sessions that it opened.
///
/// Each operation is one call of one function of the schema `dlock`, which has to be there: see
/// [`schema`](crate::schema). Grants and releases that come at the same time share a call. What is dead is dead by the server's clock at the moment when somebody
/// looks; [`reap_expired`](LockStore::reap_expired) clears it away, for a role that may.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> lock_spi::Result<()> {
/// use std::sync::Arc;
/// use lock_spi::{LockKey, LockStore, Runtime, TokioRuntime};
/// use store_postgres::{PostgresClient, PostgresConfig, PostgresLockStore};
///
/// let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
/// let config = "postgres://billing@db-1,db-2/app?sslmode=verify-full".parse()?;
/// let client = PostgresClient::new(config, Arc::clone(&runtime))?;
/// let store = PostgresLockStore::connect(client, runtime, PostgresConfig::default()).await?;
/// let info = store.read(&LockKey::new("orders/4711")?).await?;
/// println!("{:?}", info.holder);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresLockStore(Arc<Core>);

impl fmt::Debug for PostgresLockStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLockStore")
            .field("namespace", self.0.namespace())
            .finish_non_exhaustive()
    }
}

impl PostgresLockStore {
    /// Connects to the locks of one namespace. It makes no schema.
    ///
    /// # Errors
    ///
    /// `Incompatible` when the schema is missing or of another format, or when a pooler stands in
    /// between; and those of every call.
    ///
    /// # Cancel safety
    ///
    /// Nothing to compensate.
    pub async fn connect(
        client: PostgresClient,
        runtime: Arc<dyn Runtime>,
        config: PostgresConfig,
    ) -> Result<Self> {
        let core = Core::connect(client, Arc::clone(&runtime), config);
        let core = runtime.run_to_end(core).await.map_err(task_lost)??;
        Ok(Self(Arc::new(core)))
    }

    /// Runs an operation to its end, whether or not its answer is awaited: no connection is left
    /// inside of a statement.
    pub(crate) async fn run_to_end<T, F>(&self, begin: impl FnOnce(Arc<Core>) -> F) -> Result<T>
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

    pub(crate) fn client(&self) -> &PostgresClient {
        &self.0.client
    }
}

#[async_trait]
impl LockStore for PostgresLockStore {
    fn descriptor(&self) -> Descriptor {
        let config = &self.0.config;
        let mut capabilities = Capabilities::new(
            TokenSource::Sequence,
            Expiry::WhenLookedAt,
            WakeUp::Notify,
            config.hand_over_bound(),
        );
        capabilities.knows_remaining_of_others = true;
        Descriptor {
            name: "postgres",
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
        self.run_to_end(|core| close::close_session(core, session))
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
        wait::await_release(&self.0, &request).await
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
        let key = key.clone();
        self.run_to_end(|core| read::read(core, key)).await
    }

    async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>> {
        let prefix = prefix.clone();
        self.run_to_end(|core| read::list(core, prefix, page)).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
        self.run_to_end(|core| revoke::revoke(core, request)).await
    }

    async fn revocations(&self, key: &LockKey, page: PageRequest) -> Result<Page<Revocation>> {
        let key = key.clone();
        self.run_to_end(|core| read::revocations(core, key, page))
            .await
    }

    /// Clears sessions, places and grants that are dead, and looks at so many lock rows, going on
    /// where the last call ended. It takes the rights of [`Role::Reaper`](crate::schema::Role).
    async fn reap_expired(&self, limit: u32) -> Result<u32> {
        self.run_to_end(|core| reap::reap_expired(core, limit))
            .await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }
}
