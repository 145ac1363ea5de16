//! The connections that nobody uses at the moment, and how many there may be.
//!
//! A pool of general use asks each connection whether it is alive whenever it changes hands, which
//! costs up to half of what the database can do. Here a connection is taken, used for one
//! statement, and put back when that was answered.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_spi::Instant;
use sqlx::postgres::PgConnection;
use tokio::sync::{Semaphore, SemaphorePermit};

#[derive(Debug)]
pub(super) struct Pool {
    /// One permit for each connection that may be in use.
    permits: Semaphore,
    /// One less, for what is not urgent: however many want a lock, those who have one can renew it.
    /// Of a single connection all have their share, and what is urgent waits for one call at most.
    unhurried: Semaphore,
    /// For the one who looks for a connection with patience; where there are few, all are needed by
    /// those who are in a hurry.
    patience: Semaphore,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: PgConnection,
    /// When it last answered.
    alive_at: Instant,
}

/// The right to use a connection.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    _connection: SemaphorePermit<'a>,
    _unhurried: Option<SemaphorePermit<'a>>,
}

async fn one_of(semaphore: &Semaphore) -> SemaphorePermit<'_> {
    match semaphore.acquire().await {
        Ok(permit) => permit,
        // It is never closed.
        Err(_closed) => std::future::pending().await,
    }
}

impl Pool {
    pub(super) const fn new(most: usize) -> Self {
        // More than that no semaphore takes, and no server.
        let most = if most < Semaphore::MAX_PERMITS {
            most
        } else {
            Semaphore::MAX_PERMITS
        };
        Self {
            permits: Semaphore::const_new(most),
            unhurried: Semaphore::const_new(if most > 1 { most - 1 } else { 1 }),
            patience: Semaphore::const_new(if most > 2 { 1 } else { 0 }),
            idle: Mutex::new(Vec::new()),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the right to use a connection.
    pub(super) async fn permit(&self, is_urgent: bool) -> Permit<'_> {
        let unhurried = match is_urgent {
            true => None,
            false => Some(one_of(&self.unhurried).await),
        };
        Permit {
            _connection: one_of(&self.permits).await,
            _unhurried: unhurried,
        }
    }

    /// The right to look for a connection with patience, unless somebody does.
    pub(super) fn patience(&self) -> Option<SemaphorePermit<'_>> {
        self.patience.try_acquire().ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.idle().is_empty()
    }

    /// The one that was used last: it is most likely alive.
    pub(super) fn take(&self) -> Option<PgConnection> {
        self.idle().pop().map(|idle| idle.connection)
    }

    pub(super) fn give_back(&self, connection: PgConnection, alive_at: Instant) {
        self.idle().push(Idle {
            connection,
            alive_at,
        });
    }

    /// Closes those that gave no sign of life since.
    pub(super) fn drop_silent_since(&self, moment: Instant) {
        let silent: Vec<_> = {
            let mut idle = self.idle();
            idle.extract_if(.., |idle| idle.alive_at < moment).collect()
        };
        drop(silent);
    }

    /// Closes all of them.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.idle());
        drop(all);
    }
}
