//! What operators need.

use async_trait::async_trait;
use lock_spi::{
    Finding, LockKey, Migration, Page, PageRequest, RecoverRequest, Recovery, Result, SessionInfo,
    StoreAdmin, WaiterInfo,
};

use crate::calls::{Diagnose, Format, Recover};
use crate::diagnose::finding;
use crate::error::nonsense;
use crate::store::PostgresLockStore;
use crate::{read, schema};

#[async_trait]
impl StoreAdmin for PostgresLockStore {
    async fn sessions(&self, page: PageRequest) -> Result<Page<SessionInfo>> {
        self.run_to_end(|core| read::sessions(core, page)).await
    }

    async fn waiters(&self, key: &LockKey) -> Result<Vec<WaiterInfo>> {
        let key = key.clone();
        self.run_to_end(|core| read::waiters(core, key)).await
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        let told = self.run_to_end(|core| async move {
            core.call(core.config.request_timeout(), &Diagnose).await
        });
        Ok(told.await?.reply.into_iter().map(finding).collect())
    }

    async fn migration(&self) -> Result<Migration> {
        let format = self.run_to_end(|core| async move {
            core.call(core.config.request_timeout(), &Format).await
        });
        Ok(Migration {
            found: u32::try_from(format.await?.reply).ok(),
            wanted: schema::WANTED,
        })
    }

    async fn migrate(&self) -> Result<Migration> {
        schema::migrate(self.client()).await
    }

    /// The term rises for all namespaces of the database; only this one is closed and emptied.
    async fn recover(&self, request: RecoverRequest) -> Result<Recovery> {
        self.run_to_end(|core| async move {
            let recover = Recover {
                namespace: core.namespace(),
                request: &request,
            };
            let answer = core.call(core.config.request_timeout(), &recover).await;
            // A refusal is one: its effect is that of this call and no other.
            let recovered = answer?.reply;
            let term = u64::try_from(recovered.term);
            Ok(Recovery {
                term: term.map_err(|_| nonsense("a term below zero"))?,
                closed_for: recovered.closed_for,
            })
        })
        .await
    }
}
