//! One put: what a write costs at the least.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use etcd_client::KvClient;

use super::Server;
use crate::arms::{Arm, Site};
use crate::hold::Hold;

struct RawPut {
    client: KvClient,
    hold: Hold,
}

pub(super) async fn connect(server: &Server, site: &Site) -> Result<Arc<dyn Arm>> {
    Ok(Arc::new(RawPut {
        client: server.client().await?.kv_client(),
        hold: site.hold.clone(),
    }))
}

#[async_trait]
impl Arm for RawPut {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let mut client = self.client.clone();
        client.put(format!("raw-put/{key}"), "", None).await?;
        // A server that was idle for a moment is slower, for locks as for this.
        self.hold.keep().await;
        Ok(())
    }
}
