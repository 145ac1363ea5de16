//! The functions of the store, called directly: what the store and the client cannot do without.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use async_trait::async_trait;
use lock_spi::{AttemptId, Runtime, SessionId};
use sqlx::Row;
use sqlx::types::Uuid;

use super::Server;
use super::connections::Connections;
use crate::arms::{Arm, REQUEST_TIMEOUT, Site, TTL};

const OPEN: &str = "SELECT outcome FROM dlock.open_session_1($1, $2, $3, $4, $5, $6)";
/// All columns, as the store asks for them.
const GRANT: &str = "SELECT * FROM dlock.try_insert_1($1, $2, $3, $4, $5, $6, $7)";
const RELEASE: &str = "SELECT * FROM dlock.release_1($1, $2, $3, $4, $5)";
const NAMESPACE: &str = "functions";

struct Functions {
    connections: Connections,
    session: SessionId,
    lock_ms: i32,
    runtime: Arc<dyn Runtime>,
}

pub(super) async fn connect(server: &Server, site: &Site) -> Result<Arc<dyn Arm>> {
    let functions = Functions {
        connections: Connections::open(&server.url()).await?,
        session: SessionId::random(&*site.runtime),
        lock_ms: i32::try_from(REQUEST_TIMEOUT.as_millis())?,
        runtime: Arc::clone(&site.runtime),
    };
    functions.open_session().await?;
    Ok(Arc::new(functions))
}

impl Functions {
    /// A random id in the form that the server has for them.
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(AttemptId::random(&*self.runtime).as_u128())
    }

    async fn open_session(&self) -> Result<()> {
        let mut taken = self.connections.take().await?;
        let outcome: String = sqlx::query_scalar(OPEN)
            .bind(NAMESPACE)
            .bind(self.session.as_i64())
            .bind(self.uuid())
            .bind("")
            .bind(i64::try_from(TTL.as_millis())?)
            .bind(self.lock_ms)
            .fetch_one(&mut taken.connection)
            .await?;
        self.connections.give_back(taken);
        ensure!(outcome == "open", "a session is {outcome}");
        Ok(())
    }

    /// The token; `None` when it is to be asked again.
    async fn grant(&self, key: &str) -> Result<Option<i64>> {
        let mut taken = self.connections.take().await?;
        let row = sqlx::query(GRANT)
            .bind(NAMESPACE)
            .bind(key)
            .bind(self.session.as_i64())
            .bind(self.uuid())
            .bind(&b""[..])
            .bind(false)
            .bind(self.lock_ms)
            .fetch_one(&mut taken.connection)
            .await?;
        self.connections.give_back(taken);
        match row.try_get("outcome")? {
            "granted" => Ok(Some(row.try_get("token")?)),
            "held" | "again" => Ok(None),
            other => bail!("{key} is {other}"),
        }
    }

    async fn release(&self, key: &str, token: i64) -> Result<bool> {
        let mut taken = self.connections.take().await?;
        let row = sqlx::query(RELEASE)
            .bind(NAMESPACE)
            .bind(key)
            .bind(token)
            .bind(true)
            .bind(self.lock_ms)
            .fetch_one(&mut taken.connection)
            .await?;
        self.connections.give_back(taken);
        Ok(row.try_get("released")?)
    }
}

#[async_trait]
impl Arm for Functions {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let token = loop {
            if let Some(token) = self.grant(key).await? {
                break token;
            }
        };
        ensure!(self.release(key, token).await?, "{key} was lost");
        Ok(())
    }
}
