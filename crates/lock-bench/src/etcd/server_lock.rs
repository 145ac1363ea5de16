//! etcd's own lock service, which waits in the server.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use etcd_client::{LockClient, LockOptions};

use super::Server;
use super::server::lease;
use crate::arms::{Arm, Keys, Site};
use crate::hold::Hold;

struct ServerLock {
    client: LockClient,
    /// One for each task, or one for all.
    leases: Vec<i64>,
    hold: Hold,
}

pub(super) async fn connect(server: &Server, site: &Site) -> Result<Arc<dyn Arm>> {
    let client = server.client().await?;
    // Those who hold the same lease are one to the lock service: it lets them in together.
    let count = match site.keys {
        Keys::Distinct => 1,
        Keys::Hot | Keys::Held => site.tasks,
    };
    let mut leases = Vec::new();
    for _ in 0..count {
        leases.push(lease(&client).await?);
    }
    let client = client.lock_client();
    Ok(Arc::new(ServerLock {
        client,
        leases,
        hold: site.hold.clone(),
    }))
}

#[async_trait]
impl Arm for ServerLock {
    async fn once(&self, task: u32, key: &str) -> Result<()> {
        let mut client = self.client.clone();
        let own = usize::try_from(task)? % self.leases.len();
        let options = LockOptions::new().with_lease(self.leases[own]);
        let lock = client.lock(format!("lock/{key}"), Some(options)).await?;
        self.hold.keep().await;
        client.unlock(lock.key()).await?;
        Ok(())
    }
}
