//! Postgres's own locks of a session, which wait in the server: nothing is written, and none
//! outlives its connection.

use std::sync::Arc;

use anyhow::{Result, ensure};
use async_trait::async_trait;

use super::connections::Connections;
use crate::arms::{Arm, Site};
use crate::hold::Hold;

const LOCK: &str = "SELECT pg_advisory_lock(hashtextextended($1, 0))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended($1, 0))";

struct Advisory {
    connections: Connections,
    hold: Hold,
}

pub(super) fn on(connections: Connections, site: &Site) -> Arc<dyn Arm> {
    let hold = site.hold.clone();
    Arc::new(Advisory { connections, hold })
}

#[async_trait]
impl Arm for Advisory {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let mut taken = self.connections.take().await?;
        let connection = &mut taken.connection;
        sqlx::query(LOCK)
            .bind(key)
            .execute(&mut *connection)
            .await?;
        self.hold.keep().await;
        let unlocked: bool = sqlx::query_scalar(UNLOCK)
            .bind(key)
            .fetch_one(connection)
            .await?;
        self.connections.give_back(taken);
        ensure!(unlocked, "{key} was lost");
        Ok(())
    }
}
