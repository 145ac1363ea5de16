use std::sync::Arc;

use store_postgres::{ClientConfig, PostgresClient, PostgresConfig, PostgresLockStore};

use super::url::Settings;
use crate::builder::tokio_runtime;
use crate::client::Client;
use crate::error::Result;

/// Connects to a database by the part of the URL that is about it.
pub(super) async fn connect(url: &str, settings: Settings) -> Result<Client> {
    let runtime = tokio_runtime()?;
    let config: ClientConfig = url.parse()?;
    let client = PostgresClient::new(config, Arc::clone(&runtime))?;
    let config = PostgresConfig::new(settings.namespace.clone().unwrap_or_default());
    let store = PostgresLockStore::connect(client, Arc::clone(&runtime), config).await?;
    settings.client(store, runtime)
}
