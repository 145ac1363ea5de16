//! What a hand-over is at the least: a durable release, a notification, a durable grant, one after
//! another on one connection.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use lock_spi::{AttemptId, Runtime, SessionId};
use sqlx::types::Uuid;

use super::Server;
use super::connections::Connections;
use super::raw_pair::{GRANT, RELEASE};
use crate::arms::{Arm, Site};
use crate::hold::Hold;

const NOTIFY: &str = "SELECT pg_notify('raw', '')";

struct HandOver {
    connections: Connections,
    session: SessionId,
    runtime: Arc<dyn Runtime>,
    hold: Hold,
}

pub(super) async fn connect(server: &Server, site: &Site) -> Result<Arc<dyn Arm>> {
    Ok(Arc::new(HandOver {
        connections: Connections::open(&server.url()).await?,
        session: SessionId::random(&*site.runtime),
        runtime: Arc::clone(&site.runtime),
        hold: site.hold.clone(),
    }))
}

#[async_trait]
impl Arm for HandOver {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let key = format!("handed over/{key}");
        let attempt = AttemptId::random(&*self.runtime);
        let mut taken = self.connections.take().await?;
        let connection = &mut taken.connection;
        let token: Option<i64> = sqlx::query_scalar(GRANT)
            .bind(&key)
            .bind(self.session.as_i64())
            .bind(Uuid::from_u128(attempt.as_u128()))
            .fetch_optional(&mut *connection)
            .await?;
        let token = token.with_context(|| format!("{key} was not granted"))?;
        self.hold.keep().await;
        let released = sqlx::query(RELEASE)
            .bind(&key)
            .bind(token)
            .execute(&mut *connection)
            .await?;
        sqlx::query(NOTIFY).execute(&mut *connection).await?;
        self.connections.give_back(taken);
        ensure!(released.rows_affected() == 1, "{key} was lost");
        Ok(())
    }
}
