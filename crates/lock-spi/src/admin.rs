use std::fmt::Debug;

use async_trait::async_trait;

use crate::error::Result;
use crate::outcome::{Finding, Migration, Page, Recovery, SessionInfo, WaiterInfo};
use crate::request::{PageRequest, RecoverRequest};
use crate::text::LockKey;

/// What operators need of a store; reached by [`LockStore::admin`](crate::LockStore::admin).
#[async_trait]
pub trait StoreAdmin: Debug + Send + Sync {
    /// Lists the open sessions: `async fn sessions(&self, page: PageRequest) -> Result<Page<SessionInfo>>`.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a page token that this store did not make, or a limit of 0.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    async fn sessions(&self, page: PageRequest) -> Result<Page<SessionInfo>>;

    /// Lists who waits for a key, first in line first: `async fn waiters(&self, key: &LockKey) -> Result<Vec<WaiterInfo>>`.
    ///
    /// # Errors
    ///
    /// Those of every read; the effect is `None`.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    async fn waiters(&self, key: &LockKey) -> Result<Vec<WaiterInfo>>;

    /// Looks for what an operator should know: `async fn diagnose(&self) -> Result<Vec<Finding>>`.
    ///
    /// # Errors
    ///
    /// Those of every read; the effect is `None`. What can be found out is a finding, not an error.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    async fn diagnose(&self) -> Result<Vec<Finding>>;

    /// Compares the stored format with the one this build speaks: `async fn migration(&self) -> Result<Migration>`.
    ///
    /// # Errors
    ///
    /// Those of every read; the effect is `None`.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    async fn migration(&self) -> Result<Migration>;

    /// Brings the stored format up to this build's: `async fn migrate(&self) -> Result<Migration>`.
    ///
    /// Safe under concurrent starts; repeated, it is fine.
    ///
    /// # Errors
    ///
    /// `Incompatible` when the stored format is newer than this build's.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end. Queue place: none.
    async fn migrate(&self) -> Result<Migration>;

    /// Ends every session, grant and place and raises the term: `async fn recover(&self, request: RecoverRequest) -> Result<Recovery>`.
    ///
    /// For an operator, after a restore or a fail-over that lost writes. The namespace is closed for
    /// the hold-off; repeat with the same id until `closed_for` is zero.
    ///
    /// # Contract
    ///
    /// - **RECOVER-1** Every later token is above every earlier one, and above `above`.
    /// - **RECOVER-2** Until the hold-off is over nothing is opened or granted.
    /// - **RECOVER-3** Repeated with the same id it goes on with what it began.
    ///
    /// # Errors
    ///
    /// `Exhausted` when the term is at its end; otherwise those of every write.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end; repeat with the same
    /// id. Queue place: all are lost.
    async fn recover(&self, request: RecoverRequest) -> Result<Recovery>;
}
