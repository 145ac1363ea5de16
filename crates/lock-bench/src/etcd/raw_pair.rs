//! The least that makes a lock: put the key if it is not there, delete it if it is the one put.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use etcd_client::{Compare, CompareOp, KvClient, PutOptions, Txn, TxnOp};

use super::Server;
use super::server::lease;
use crate::arms::Arm;

struct RawPair {
    client: KvClient,
    lease: i64,
}

pub(super) async fn connect(server: &Server) -> Result<Arc<dyn Arm>> {
    let client = server.client().await?;
    Ok(Arc::new(RawPair {
        lease: lease(&client).await?,
        client: client.kv_client(),
    }))
}

#[async_trait]
impl Arm for RawPair {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let key = format!("raw-pair/{key}");
        let mut client = self.client.clone();
        let revision = loop {
            let free = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
            let leased = PutOptions::new().with_lease(self.lease);
            let put = TxnOp::put(key.as_str(), "", Some(leased));
            let answer = client.txn(Txn::new().when([free]).and_then([put])).await?;
            if answer.succeeded() {
                break answer.header().context("no header")?.revision();
            }
        };
        let own = Compare::mod_revision(key.as_str(), CompareOp::Equal, revision);
        let delete = TxnOp::delete(key, None);
        let answer = client
            .txn(Txn::new().when([own]).and_then([delete]))
            .await?;
        ensure!(answer.succeeded(), "the key is not the one that was put");
        Ok(())
    }
}
