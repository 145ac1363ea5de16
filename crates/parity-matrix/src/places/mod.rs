//! Where the suite is played: servers of one's own, and those that somebody names.

mod etcd;
mod postgres;
mod simulated;

use std::sync::Arc;

use anyhow::Result;
use parity_tests::Deployment;

use crate::known_bugs::{self, KnownBug};

pub(crate) use etcd::EtcdPlace;
pub(crate) use postgres::{Credentials, PostgresDeployment, PostgresPlace};
pub(crate) use simulated::{embedded, play_all};

/// A real server.
#[derive(Debug)]
pub(crate) enum Place {
    Etcd(Box<EtcdPlace>),
    Postgres(Box<PostgresPlace>),
}

impl Place {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Etcd(place) => &place.name,
            Self::Postgres(place) => &place.name,
        }
    }

    /// The server's version, as it tells it; empty where it does not.
    pub(crate) fn version(&self) -> &str {
        match self {
            Self::Etcd(place) => &place.version,
            Self::Postgres(place) => &place.version,
        }
    }

    pub(crate) const fn bugs(&self) -> &'static [KnownBug] {
        match self {
            Self::Etcd(_) => known_bugs::ETCD,
            Self::Postgres(_) => &[],
        }
    }

    /// A fresh deployment.
    pub(crate) async fn deployment(&self) -> Result<Arc<dyn Deployment>> {
        match self {
            Self::Etcd(place) => Ok(Arc::new(place.deployment().await?)),
            Self::Postgres(place) => Ok(Arc::new(place.deployment().await?)),
        }
    }

    /// A fresh namespace, of whose store others use other namespaces.
    pub(crate) async fn shared_deployment(&self) -> Result<Arc<dyn Deployment>> {
        match self {
            Self::Etcd(place) => Ok(Arc::new(place.deployment().await?)),
            Self::Postgres(place) => Ok(Arc::new(place.shared_deployment().await?)),
        }
    }

    /// Takes away what was played.
    pub(crate) async fn clear(&self) -> Result<()> {
        match self {
            Self::Etcd(place) => place.clear().await,
            Self::Postgres(place) => place.clear().await,
        }
    }
}
