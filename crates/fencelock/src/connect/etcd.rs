use std::sync::Arc;

use lock_spi::Finding;
use store_etcd::{ClientConfig, EtcdClient, EtcdConfig, EtcdLockStore};

use super::url::Settings;
use crate::builder::tokio_runtime;
use crate::client::Client;
use crate::error::Result;

/// Connects to a cluster by the part of the URL that is about it.
pub(super) async fn connect(url: &str, settings: Settings) -> Result<Client> {
    let runtime = tokio_runtime()?;
    let config: ClientConfig = url.parse()?;
    let etcd = EtcdClient::connect(config.with_environment(), Arc::clone(&runtime)).await?;
    let config = config_of(&settings);
    let store = EtcdLockStore::open(etcd, Arc::clone(&runtime), config).await?;
    settings.client(store, runtime)
}

/// Looks at a cluster, whether or not it can be connected to.
pub(super) async fn examine(url: &str, settings: &Settings) -> Result<Vec<Finding>> {
    let runtime = tokio_runtime()?;
    let config: ClientConfig = url.parse()?;
    let ttl = settings.ttl.unwrap_or_default();
    let examined =
        store_etcd::examine(config.with_environment(), runtime, config_of(settings), ttl);
    Ok(examined.await?)
}

fn config_of(settings: &Settings) -> EtcdConfig {
    let config = EtcdConfig::new(settings.namespace.clone().unwrap_or_default());
    match settings.request_timeout {
        Some(limit) => config.with_request_timeout(limit),
        None => config,
    }
}
