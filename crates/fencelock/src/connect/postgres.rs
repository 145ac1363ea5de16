use std::sync::Arc;

use lock_spi::{Finding, Migration};
use store_postgres::schema::{self, Role};
use store_postgres::{ClientConfig, PostgresClient, PostgresConfig, PostgresLockStore};

use super::Duty;
use super::url::Settings;
use crate::builder::tokio_runtime;
use crate::client::Client;
use crate::error::Result;

/// Connects to a database by the part of the URL that is about it.
pub(super) async fn connect(url: &str, settings: Settings) -> Result<Client> {
    let runtime = tokio_runtime()?;
    let mut config = PostgresConfig::new(settings.namespace.clone().unwrap_or_default());
    if let Some(limit) = settings.request_timeout {
        config = config.with_request_timeout(limit);
    }
    let store = PostgresLockStore::connect(client(url)?, Arc::clone(&runtime), config).await?;
    settings.client(store, runtime)
}

/// The statements that make the schema.
pub(super) fn script() -> String {
    schema::sql()
}

/// The statements that let a role do its duty.
pub(super) fn rights(role: &str, duty: Duty) -> String {
    let kind = match duty {
        Duty::Locks => Role::Application,
        Duty::ClearingUp => Role::Reaper,
    };
    schema::grants(kind, role)
}

/// Looks at a database, whether or not it has the schema.
pub(super) async fn examine(url: &str) -> Result<Vec<Finding>> {
    Ok(store_postgres::examine(&client(url)?).await?)
}

/// Compares the schema with that of this build.
pub(super) async fn migration(url: &str) -> Result<Migration> {
    Ok(schema::inspect(&client(url)?).await?)
}

/// Makes the schema.
pub(super) async fn migrate(url: &str) -> Result<Migration> {
    Ok(schema::migrate(&client(url)?).await?)
}

fn client(url: &str) -> Result<PostgresClient> {
    let config: ClientConfig = url.parse()?;
    Ok(PostgresClient::new(config, tokio_runtime()?)?)
}
