//! What is measured: each arm does the same thing its own way.

mod bare;
mod guards;
mod raw_pair;
mod raw_put;
mod server_lock;
mod store;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use clap::ValueEnum;
use etcd_client::Client;
use etcd_kv::MetadataStore;
use lock_spi::{LockStore, Namespace, OpenSessionRequest, Owner, Runtime, SessionId, Ttl};
use store_etcd::{ClientConfig, EtcdClient, EtcdConfig, EtcdLockStore};

/// Generous, so that a busy machine slows a slice down and does not end it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// So long that nothing has to be renewed in a slice.
const TTL: Duration = Duration::from_secs(3600);

/// One way to do one operation: a write, or a lock taken and given back.
#[async_trait]
pub(crate) trait Arm: Send + Sync {
    /// Does it once and waits until it is confirmed. With one key for all, it waits for its turn.
    async fn once(&self, task: u32, key: &str) -> Result<()>;
}

/// The arms, in the order of the tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Kind {
    /// One put.
    RawPut,
    /// The least transactions that make a lock.
    RawPair,
    /// The transactions of the store, with nothing around them.
    Bare,
    /// The store.
    Store,
    /// The client: guards.
    Guards,
    /// etcd's own lock service.
    ServerLock,
}

/// Which keys the tasks work on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Keys {
    /// Each task has some of its own.
    Distinct,
    /// All have the same one.
    Hot,
}

/// Where an arm works.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// As `127.0.0.1:2379`.
    pub(crate) endpoint: String,
    pub(crate) keys: Keys,
    /// How many tasks work side by side.
    pub(crate) tasks: u32,
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl Keys {
    /// How many times as long as usual a slice is: of one key there are few hand-overs.
    pub(crate) const fn slices(self) -> u32 {
        match self {
            Self::Distinct => 1,
            Self::Hot => 4,
        }
    }
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::RawPut,
        Self::RawPair,
        Self::Bare,
        Self::Store,
        Self::Guards,
        Self::ServerLock,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RawPut => "raw put",
            Self::RawPair => "raw pair",
            Self::Bare => "GRANT + DELETE",
            Self::Store => "store",
            Self::Guards => "guards",
            Self::ServerLock => "etcd's Lock + Unlock",
        }
    }

    /// How many writes one operation is: a lock taken and given back is two.
    pub(crate) const fn writes(self) -> f64 {
        match self {
            Self::RawPut => 1.0,
            _ => 2.0,
        }
    }

    /// How many tasks do it. On one key for all, puts come from one task: one after another, as
    /// locks of one key must.
    pub(crate) const fn tasks(self, site: &Site) -> u32 {
        match (self, site.keys) {
            (Self::RawPut, Keys::Hot) => 1,
            _ => site.tasks,
        }
    }

    /// Connects an arm of its own.
    pub(crate) async fn connect(self, site: &Site) -> Result<Arc<dyn Arm>> {
        let arm: Result<Arc<dyn Arm>> = match self {
            Self::RawPut => raw_put::connect(site).await,
            Self::RawPair => raw_pair::connect(site).await,
            Self::Bare => bare::connect(site).await,
            Self::Store => store::connect(site).await,
            Self::Guards => guards::connect(site).await,
            Self::ServerLock => server_lock::connect(site).await,
        };
        arm.with_context(|| format!("{} cannot begin", self.name()))
    }
}

impl Site {
    /// A connection by etcd-client, with nothing around it.
    async fn client(&self) -> Result<Client> {
        Ok(Client::connect([format!("http://{}", self.endpoint)], None).await?)
    }

    /// A connection as the store uses it.
    async fn adaptor(&self) -> Result<EtcdClient> {
        let config: ClientConfig = format!("etcd://{}", self.endpoint).parse()?;
        let config = config.with_request_timeout(REQUEST_TIMEOUT);
        Ok(EtcdClient::connect(config, Arc::clone(&self.runtime)).await?)
    }

    /// A store in a namespace of the arm's own.
    async fn store<M: MetadataStore>(&self, kv: M, namespace: &str) -> Result<EtcdLockStore<M>> {
        let config = EtcdConfig::new(Namespace::new(namespace)?);
        let config = config.with_request_timeout(REQUEST_TIMEOUT);
        Ok(EtcdLockStore::open(kv, Arc::clone(&self.runtime), config).await?)
    }

    /// A session that outlives the benchmark.
    async fn session(&self, store: &impl LockStore) -> Result<SessionId> {
        let session = SessionId::random(&*self.runtime);
        let request = OpenSessionRequest {
            session,
            owner: Owner::default(),
            ttl: Ttl::new(TTL)?,
        };
        store.open_session(request).await?;
        Ok(session)
    }
}

/// A lease that outlives the benchmark.
async fn lease(client: &Client) -> Result<i64> {
    let ttl = i64::try_from(TTL.as_secs())?;
    let granted = client.lease_client().grant(ttl, None).await?;
    Ok(granted.id())
}
