//! Real clusters of etcd.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use etcd_kv::{DeleteRequest, KeyRange, MetadataStore};
use lock_spi::{Namespace, Runtime, TokioRuntime};
use sim_runtime::Weather;
use store_etcd::EtcdClient;
use test_servers::Etcd;

use crate::deployment::EtcdDeployment;

/// A cluster; each deployment has a namespace of its own.
#[derive(Debug)]
pub(crate) struct EtcdPlace {
    pub(crate) name: String,
    pub(crate) version: String,
    url: String,
    /// Begins the names of all namespaces of this run.
    prefix: String,
    namespaces: AtomicU32,
    /// It ends with the place.
    _server: Option<Etcd>,
}

impl EtcdPlace {
    /// Starts a cluster of so many members, of this program or of the usual one.
    pub(crate) fn start(name: String, members: usize, program: Option<&Path>) -> Result<Self> {
        let mut builder = Etcd::builder().members(members);
        if let Some(program) = program {
            builder = builder.program(program);
        }
        let server = builder.start()?;
        let url = format!("etcd://{}", server.endpoints().join(","));
        let told = server.ctl(&["endpoint", "status", "--write-out=simple"])?;
        // Endpoint, member, version and more, with commas between.
        let version = told.split(", ").nth(2).unwrap_or_default().to_owned();
        Ok(Self {
            version,
            _server: Some(server),
            ..Self::at(name, url)
        })
    }

    /// A cluster that somebody named.
    pub(crate) fn at(name: String, url: String) -> Self {
        Self {
            name,
            version: String::new(),
            url,
            prefix: format!("parity-{}-", std::process::id()),
            namespaces: AtomicU32::new(0),
            _server: None,
        }
    }

    async fn client(&self) -> Result<(EtcdClient, Arc<dyn Runtime>)> {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
        let config = self.url.parse().context("not an address of etcd")?;
        let client = EtcdClient::connect(config, Arc::clone(&runtime)).await;
        Ok((client?, runtime))
    }

    pub(crate) async fn deployment(&self) -> Result<EtcdDeployment<EtcdClient>> {
        let (server, runtime) = self.client().await?;
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        Ok(EtcdDeployment {
            runtime: Arc::clone(&runtime),
            server,
            namespace: Namespace::new(format!("{}{number}", self.prefix))?,
            weather: Weather::calm(),
            process: Box::new(move || Arc::clone(&runtime)),
        })
    }

    pub(crate) async fn clear(&self) -> Result<()> {
        if self._server.is_some() {
            return Ok(());
        }
        let (server, _) = self.client().await?;
        let begin = format!("/dlock/{}", self.prefix);
        server
            .delete(DeleteRequest::new(KeyRange::prefix(begin)))
            .await?;
        Ok(())
    }
}
