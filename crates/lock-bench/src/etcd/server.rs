//! An etcd, and the ways to it.

use std::sync::Arc;

use anyhow::{Context, Result};
use etcd_client::Client;
use etcd_kv::MetadataStore;
use lock_spi::{Namespace, Runtime};
use store_etcd::{ClientConfig, EtcdClient, EtcdConfig, EtcdLockStore};
use test_servers::Etcd;

use super::{Kind, bare, raw_pair, raw_put, server_lock};
use crate::arms::{Arm, REQUEST_TIMEOUT, Site, TTL, clients, guards, store};
use crate::backend::Backend;
use crate::cpu::Process;

#[derive(Debug)]
pub(crate) struct Server(Etcd);

impl Server {
    /// As `127.0.0.1:2379`.
    fn endpoint(&self) -> Result<String> {
        let all = self.0.endpoints().into_iter();
        all.last().context("a server without an address")
    }

    /// A connection by etcd-client, with nothing around it.
    pub(super) async fn client(&self) -> Result<Client> {
        let address = format!("http://{}", self.endpoint()?);
        Ok(Client::connect([address], None).await?)
    }

    /// A connection as the store uses it.
    pub(super) async fn adaptor(&self, site: &Site) -> Result<EtcdClient> {
        let config: ClientConfig = format!("etcd://{}", self.endpoint()?).parse()?;
        let config = config.with_request_timeout(REQUEST_TIMEOUT);
        Ok(EtcdClient::connect(config, Arc::clone(&site.runtime)).await?)
    }
}

/// A store in a namespace of the arm's own.
pub(super) async fn open<M: MetadataStore>(
    kv: M,
    site: &Site,
    namespace: &str,
) -> Result<EtcdLockStore<M>> {
    let config = EtcdConfig::new(Namespace::new(namespace)?);
    let config = config.with_request_timeout(REQUEST_TIMEOUT);
    Ok(EtcdLockStore::open(kv, Arc::clone(&site.runtime), config).await?)
}

/// A lease that outlives the benchmark.
pub(super) async fn lease(client: &Client) -> Result<i64> {
    let ttl = i64::try_from(TTL.as_secs())?;
    let granted = client.lease_client().grant(ttl, None).await?;
    Ok(granted.id())
}

impl Backend for Server {
    type Kind = Kind;

    async fn start(fsync: bool, _: &Arc<dyn Runtime>) -> Result<Self> {
        let builder = Etcd::builder();
        let builder = if fsync { builder.fsync() } else { builder };
        Ok(Self(builder.start()?))
    }

    fn process(&self) -> Result<Process> {
        Ok(Process::of(self.0.process(0)?))
    }

    async fn version(&self) -> Result<String> {
        let status = self.client().await?.maintenance_client().status().await?;
        Ok(status.version().to_owned())
    }

    async fn connect(&self, kind: Kind, site: &Site) -> Result<Arc<dyn Arm>> {
        match kind {
            Kind::RawPut => raw_put::connect(self, site).await,
            Kind::RawPair => raw_pair::connect(self).await,
            Kind::Bare => bare::connect(self, site).await,
            Kind::Store => {
                let kv = self.adaptor(site).await?;
                store::of(open(kv, site, "store").await?, site).await
            }
            Kind::Guards => {
                let kv = self.adaptor(site).await?;
                guards::of(open(kv, site, "guards").await?, site)
            }
            Kind::Clients => {
                let own = async || open(self.adaptor(site).await?, site, "clients").await;
                clients::of(site, own).await
            }
            Kind::ServerLock => server_lock::connect(self, site).await,
        }
    }
}
