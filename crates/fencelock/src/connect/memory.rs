use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use etcd_mock::{MockStore, Options};
use lock_spi::Runtime;
use store_etcd::{EtcdConfig, EtcdLockStore};

use super::url::Settings;
use crate::builder::tokio_runtime;
use crate::client::Client;
use crate::error::Result;

/// The embedded stores of this process by name. They live as long as a client has them.
static NAMED: Mutex<BTreeMap<String, Weak<MockStore>>> = Mutex::new(BTreeMap::new());

/// Opens the embedded store, private or by its name.
pub(super) async fn connect(name: Option<&str>, settings: Settings) -> Result<Client> {
    let runtime = tokio_runtime()?;
    let server = match name {
        Some(name) => named(name, &runtime),
        None => embedded(&runtime),
    };
    let namespace = settings.namespace.clone().unwrap_or_default();
    let config = EtcdConfig::new(namespace);
    let store = EtcdLockStore::open(server, Arc::clone(&runtime), config).await?;
    settings.client(store, runtime)
}

fn embedded(runtime: &Arc<dyn Runtime>) -> Arc<MockStore> {
    let options = Options::embedded();
    Arc::new(MockStore::in_step_with_options(
        Arc::clone(runtime),
        options,
    ))
}

fn named(name: &str, runtime: &Arc<dyn Runtime>) -> Arc<MockStore> {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|_, server| server.strong_count() > 0);
    if let Some(server) = named.get(name).and_then(Weak::upgrade) {
        return server;
    }
    let server = embedded(runtime);
    named.insert(name.to_owned(), Arc::downgrade(&server));
    server
}
