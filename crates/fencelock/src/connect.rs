mod url;

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "postgres")]
mod postgres;

use lock_spi::{Finding, Migration};

pub(crate) use self::url::StoreUrl;
use self::url::Target;
use crate::client::Client;
use crate::error::Result;

/// Connects to what a URL names; see [`Client::connect`].
pub(crate) async fn connect(url: &str) -> Result<Client> {
    open(url.parse()?).await
}

async fn open(url: StoreUrl) -> Result<Client> {
    match &url.target {
        #[cfg(feature = "memory")]
        Target::Memory(name) => memory::connect(name.as_deref(), url.settings).await,
        #[cfg(not(feature = "memory"))]
        Target::Memory(_) => Err(missing("memory:", "`memory`, which this build is without")),
        #[cfg(feature = "etcd")]
        Target::Etcd(address) => etcd::connect(address, url.settings).await,
        #[cfg(not(feature = "etcd"))]
        Target::Etcd(_) => Err(missing("etcd://", "`etcd`, which this build is without")),
        #[cfg(feature = "postgres")]
        Target::Postgres(address) => postgres::connect(address, url.settings).await,
        #[cfg(not(feature = "postgres"))]
        Target::Postgres(_) => Err(missing(
            "postgres://",
            "`postgres`, which this build is without",
        )),
    }
}

/// See [`Installation::script`](crate::Installation::script).
pub(crate) fn script(url: &StoreUrl) -> Option<String> {
    match &url.target {
        #[cfg(feature = "postgres")]
        Target::Postgres(_) => Some(postgres::script()),
        _ => None,
    }
}

/// What a role of a database is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Duty {
    Locks,
    ClearingUp,
}

/// See [`Installation::rights`](crate::Installation::rights).
pub(crate) fn rights(url: &StoreUrl, role: &str, duty: Duty) -> Option<String> {
    match &url.target {
        #[cfg(feature = "postgres")]
        Target::Postgres(_) => Some(postgres::rights(role, duty)),
        _ => {
            let _no_rights_to_give = (role, duty);
            None
        }
    }
}

/// See [`Installation::examine`](crate::Installation::examine).
pub(crate) async fn examine(url: &StoreUrl) -> Result<Vec<Finding>> {
    match &url.target {
        #[cfg(feature = "etcd")]
        Target::Etcd(address) => etcd::examine(address, &url.settings).await,
        #[cfg(feature = "postgres")]
        Target::Postgres(address) => postgres::examine(address).await,
        _ => open(url.clone()).await?.admin().diagnose().await,
    }
}

/// See [`Installation::migration`](crate::Installation::migration).
pub(crate) async fn migration(url: &StoreUrl) -> Result<Migration> {
    match &url.target {
        #[cfg(feature = "postgres")]
        Target::Postgres(address) => postgres::migration(address).await,
        _ => open(url.clone()).await?.admin().migration().await,
    }
}

/// See [`Installation::migrate`](crate::Installation::migrate).
pub(crate) async fn migrate(url: &StoreUrl) -> Result<Migration> {
    match &url.target {
        #[cfg(feature = "postgres")]
        Target::Postgres(address) => postgres::migrate(address).await,
        _ => open(url.clone()).await?.admin().migrate().await,
    }
}

#[cfg(not(all(feature = "etcd", feature = "memory", feature = "postgres")))]
fn missing(scheme: &str, feature: &str) -> crate::error::Error {
    crate::error::Error::invalid(format!("URLs with {scheme} need the feature {feature}"))
}
