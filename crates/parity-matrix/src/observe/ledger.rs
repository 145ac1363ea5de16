//! What an operator can see of a store past its interface.

use async_trait::async_trait;
use etcd_kv::{MetadataStore, RangeRequest};
use parity_tests::Deployment;
use sqlx::Row as _;

use crate::deployment::EtcdDeployment;
use crate::places::PostgresDeployment;

/// A deployment whose storage can be looked at.
#[async_trait]
pub(crate) trait Ledger: Deployment {
    /// Where the store's log stands.
    async fn mark(&self) -> anyhow::Result<i64>;

    /// How many stored entries were written since.
    async fn written_since(&self, mark: i64) -> anyhow::Result<usize>;

    /// What is stored, without what is drawn at random.
    async fn stored(&self) -> anyhow::Result<Vec<String>>;
}

impl<M: MetadataStore + Clone> EtcdDeployment<M> {
    async fn entries(&self) -> anyhow::Result<(i64, Vec<(String, i64)>)> {
        let root = format!("/dlock/{}/", self.namespace);
        let answer = self
            .server
            .range(RangeRequest::prefix(root.clone()))
            .await?;
        let entries = answer.kvs.iter().map(|kv| {
            let name = String::from_utf8_lossy(&kv.key[root.len()..]).into_owned();
            (name, kv.mod_revision)
        });
        Ok((answer.header.revision, entries.collect()))
    }
}

#[async_trait]
impl<M: MetadataStore + Clone> Ledger for EtcdDeployment<M> {
    async fn mark(&self) -> anyhow::Result<i64> {
        Ok(self.entries().await?.0)
    }

    async fn written_since(&self, mark: i64) -> anyhow::Result<usize> {
        let (_, entries) = self.entries().await?;
        Ok(entries
            .iter()
            .filter(|(_, written)| *written > mark)
            .count())
    }

    async fn stored(&self) -> anyhow::Result<Vec<String>> {
        let (_, entries) = self.entries().await?;
        let names = entries.into_iter().map(|(name, _)| {
            let parts: Vec<_> = name.split('/').collect();
            match parts[..] {
                ["session" | "epoch", _] => format!("`{}/…`", parts[0]),
                ["wait" | "revocation", key, _] => format!("`{}/{key}/…`", parts[0]),
                _ => format!("`{name}`"),
            }
        });
        Ok(names.collect())
    }
}

/// Everything that the store keeps, a row a line.
const ROWS: &str = "\
    SELECT 'a row of `meta`' AS name, xmin::text::bigint AS written FROM dlock.meta \
    UNION ALL SELECT 'a row of `sessions`', xmin::text::bigint FROM dlock.sessions \
    UNION ALL SELECT CASE WHEN held THEN 'a row of `locks`' ELSE 'an emptied row of `locks`' END \
                  || CASE WHEN floor IS NULL THEN '' ELSE ' with a floor' END, \
                     xmin::text::bigint FROM dlock.locks \
    UNION ALL SELECT 'a row of `waiters`', xmin::text::bigint FROM dlock.waiters \
    UNION ALL SELECT 'a row of `spent`', xmin::text::bigint FROM dlock.spent \
    UNION ALL SELECT 'a row of `revocations`', xmin::text::bigint FROM dlock.revocations";

impl PostgresDeployment {
    async fn rows(&self) -> anyhow::Result<Vec<(String, i64)>> {
        let mut operator = self.operator().await;
        let rows = sqlx::query(ROWS).fetch_all(&mut *operator).await?;
        let rows = rows
            .iter()
            .map(|row| Ok((row.try_get("name")?, row.try_get("written")?)));
        rows.collect()
    }
}

#[async_trait]
impl Ledger for PostgresDeployment {
    async fn mark(&self) -> anyhow::Result<i64> {
        // The number of the next transaction that writes.
        let next = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
        let mut operator = self.operator().await;
        Ok(sqlx::query_scalar(next).fetch_one(&mut *operator).await?)
    }

    async fn written_since(&self, mark: i64) -> anyhow::Result<usize> {
        let rows = self.rows().await?;
        Ok(rows.iter().filter(|(_, written)| *written >= mark).count())
    }

    async fn stored(&self) -> anyhow::Result<Vec<String>> {
        let rows = self.rows().await?;
        Ok(rows.into_iter().map(|(name, _)| name).collect())
    }
}
