//! Connections that are taken and given back, as many as the store has, and with nothing else
//! around them.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many connections every arm has.
pub(super) const CONNECTIONS: u32 = 16;
/// A plan that is made while a table is small stays after it has grown. The functions of the store
/// are set likewise.
const SETTINGS: [(&str, &str); 2] = [("enable_seqscan", "off"), ("jit", "off")];

pub(super) struct Connections {
    permits: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
}

/// A connection that nobody else uses.
pub(super) struct Taken<'a> {
    pub(super) connection: PgConnection,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    pub(super) async fn open(url: &str) -> Result<Self> {
        let options: PgConnectOptions = url.parse()?;
        let options = options.options(SETTINGS).disable_statement_logging();
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(options.connect().await?);
        }
        Ok(Self {
            permits: Semaphore::new(idle.len()),
            idle: Mutex::new(idle),
        })
    }

    pub(super) async fn take(&self) -> Result<Taken<'_>> {
        let permit = self.permits.acquire().await?;
        let taken = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        Ok(Taken {
            connection: taken.context("a connection was not given back")?,
            _permit: permit,
        })
    }

    pub(super) fn give_back(&self, taken: Taken<'_>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(taken.connection);
    }
}
