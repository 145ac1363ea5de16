mod url;

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "postgres")]
mod postgres;

use self::url::{StoreUrl, Target};
use crate::client::Client;
use crate::error::Result;

/// Connects to what a URL names; see [`Client::connect`].
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let url: StoreUrl = url.parse()?;
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

#[cfg(not(all(feature = "etcd", feature = "memory", feature = "postgres")))]
fn missing(scheme: &str, feature: &str) -> crate::error::Error {
    crate::error::Error::invalid(format!("URLs with {scheme} need the feature {feature}"))
}
