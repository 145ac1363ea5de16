//! The least that makes a lock with a token that rises: one row for each key, granted by an upsert
//! and released by an update.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use lock_spi::{AttemptId, Runtime, SessionId};
use sqlx::types::Uuid;

use super::Server;
use super::connections::Connections;
use crate::arms::{Arm, Site};
use crate::hold::Hold;

/// A table like that of the store, whose form `LIKE` leaves out.
pub(super) const TABLE: &str = "
    CREATE SCHEMA raw;
    CREATE SEQUENCE raw.token_seq;
    CREATE TABLE raw.locks (LIKE dlock.locks INCLUDING ALL) WITH (
      fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
      vacuum_truncate = false);
";
/// The token is drawn where the row is locked, so that the tokens of a key rise; the first one is 0.
pub(super) const GRANT: &str = "
    INSERT INTO raw.locks AS l
           (namespace, lock_key, held, session, attempt, granted_at, expires_at)
    VALUES ('raw', $1, true, $2, $3, clock_timestamp(), clock_timestamp() + interval '1 hour')
    ON CONFLICT (namespace, lock_key) DO UPDATE
       SET token = nextval('raw.token_seq'), held = true, session = excluded.session,
           attempt = excluded.attempt, granted_at = excluded.granted_at,
           expires_at = excluded.expires_at
     WHERE NOT l.held OR l.expires_at <= clock_timestamp()
    RETURNING token";
pub(super) const RELEASE: &str = "
    UPDATE raw.locks SET held = false
     WHERE namespace = 'raw' AND lock_key = $1 AND token = $2 AND held";

struct RawPair {
    connections: Connections,
    session: SessionId,
    runtime: Arc<dyn Runtime>,
    hold: Hold,
}

pub(super) async fn connect(server: &Server, site: &Site) -> Result<Arc<dyn Arm>> {
    Ok(Arc::new(RawPair {
        connections: Connections::open(&server.url()).await?,
        session: SessionId::random(&*site.runtime),
        runtime: Arc::clone(&site.runtime),
        hold: site.hold.clone(),
    }))
}

#[async_trait]
impl Arm for RawPair {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let attempt = AttemptId::random(&*self.runtime);
        let mut taken = self.connections.take().await?;
        let token: Option<i64> = sqlx::query_scalar(GRANT)
            .bind(key)
            .bind(self.session.as_i64())
            .bind(Uuid::from_u128(attempt.as_u128()))
            .fetch_optional(&mut taken.connection)
            .await?;
        self.connections.give_back(taken);
        let token = token.with_context(|| format!("{key} was not granted"))?;
        self.hold.keep().await;
        let mut taken = self.connections.take().await?;
        let released = sqlx::query(RELEASE)
            .bind(key)
            .bind(token)
            .execute(&mut taken.connection)
            .await?;
        self.connections.give_back(taken);
        ensure!(released.rows_affected() == 1, "{key} was lost");
        Ok(())
    }
}
