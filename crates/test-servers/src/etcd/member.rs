//! One member of a cluster.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::clock;
use crate::etcd::health;
use crate::server::Server;

/// Generous: a busy machine starts three servers slowly. What has failed is noticed at once.
const READY_LIMIT: Duration = Duration::from_secs(30);

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
        let server = &self.server;
        let settled = clock::poll(READY_LIMIT, || {
            let healthy = health::is_good(self.ports.metrics);
            // Asked last: were the port another server's, ours would have ended by now.
            match (server.runs(), healthy) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            }
        });
        let what = match settled {
            Some(true) => return Ok(()),
            Some(false) => "etcd has ended",
            None => "etcd does not become ready",
        };
        bail!("{what}; the last that it said:\n{}", server.last_of_log())
    }
}
