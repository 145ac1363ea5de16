//! One member of a cluster.

use anyhow::Result;

use crate::etcd::health;
use crate::server::Server;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) ports: Ports,
    pub(super) server: Server,
}

/// Where a member listens on the loopback address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) client: u16,
    pub(super) peer: u16,
    /// For questions about the member itself; plain HTTP.
    pub(super) metrics: u16,
}

impl Member {
    pub(super) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.ports.client)
    }

    /// Whether the member is up and takes itself for the leader.
    pub(super) fn leads(&self) -> bool {
        self.server.is_up() && health::leads(self.ports.metrics)
    }

    /// Waits until the member answers that it can read with the consent of a majority.
    pub(super) fn await_ready(&self) -> Result<()> {
        let serves = || health::is_good(self.ports.metrics);
        self.server.await_ready("etcd", serves)
    }
}
