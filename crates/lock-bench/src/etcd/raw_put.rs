//! One put: what a write costs at the least.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use etcd_client::KvClient;

use super::Server;
use crate::arms::Arm;

struct RawPut(KvClient);

pub(super) async fn connect(server: &Server) -> Result<Arc<dyn Arm>> {
    Ok(Arc::new(RawPut(server.client().await?.kv_client())))
}

#[async_trait]
impl Arm for RawPut {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        self.0
            .clone()
            .put(format!("raw-put/{key}"), "", None)
            .await?;
        Ok(())
    }
}
