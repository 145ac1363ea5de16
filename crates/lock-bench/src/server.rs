//! The server that the arms work on.

use anyhow::{Context, Result};
use etcd_client::Client;
use test_servers::Etcd;

/// A server with nothing in it, which ends with this.
#[derive(Debug)]
pub(crate) struct Server(Etcd);

impl Server {
    /// Starts it; told not to wait for its disk, it does so only if it must.
    pub(crate) fn start(fsync: bool) -> Result<Self> {
        let builder = Etcd::builder();
        let builder = if fsync { builder.fsync() } else { builder };
        Ok(Self(builder.start()?))
    }

    /// As `127.0.0.1:2379`.
    pub(crate) fn endpoint(&self) -> Result<String> {
        let all = self.0.endpoints().into_iter();
        all.last().context("a server without an address")
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> Result<u32> {
        self.0.process(0)
    }

    pub(crate) async fn version(&self) -> Result<String> {
        let address = format!("http://{}", self.endpoint()?);
        let client = Client::connect([address], None).await?;
        let status = client.maintenance_client().status().await?;
        Ok(status.version().to_owned())
    }
}
