use std::sync::Arc;

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
    let config = EtcdConfig::new(settings.namespace.clone().unwrap_or_default());
    let store = EtcdLockStore::open(etcd, Arc::clone(&runtime), config).await?;
    settings.client(store, runtime)
}
