//! Lies to operators.

use async_trait::async_trait;
use lock_spi::{
    ErrorKind, Finding, LockKey, LockStore, Migration, Page, PageRequest, RecoverRequest, Recovery,
    RecoveryId, Result, SessionInfo, StoreAdmin, WaiterInfo,
};

use super::sessions::refused;
use super::{Lie, Lying};

impl<S: LockStore> Lying<S> {
    fn own_admin(&self) -> Result<&dyn StoreAdmin> {
        let lacking = || refused(ErrorKind::InvalidRequest, "the store has no such means");
        self.store.admin().ok_or_else(lacking)
    }
}

#[async_trait]
impl<S: LockStore> StoreAdmin for Lying<S> {
    async fn sessions(&self, page: PageRequest) -> Result<Page<SessionInfo>> {
        self.own_admin()?.sessions(page).await
    }

    async fn waiters(&self, key: &LockKey) -> Result<Vec<WaiterInfo>> {
        self.own_admin()?.waiters(&self.key(key)).await
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        self.own_admin()?.diagnose().await
    }

    async fn migration(&self) -> Result<Migration> {
        self.own_admin()?.migration().await
    }

    async fn migrate(&self) -> Result<Migration> {
        self.own_admin()?.migrate().await
    }

    async fn recover(&self, request: RecoverRequest) -> Result<Recovery> {
        let told = request.hold_off;
        let id = match self.tells(Lie::RecoversAgain) {
            true => RecoveryId::random(&*self.runtime),
            false => request.id,
        };
        let hold_off = match self.tells(Lie::OpensWhileClosed) {
            true => std::time::Duration::ZERO,
            false => request.hold_off,
        };
        let own = RecoverRequest {
            id,
            hold_off,
            ..request
        };
        let recovery = self.own_admin()?.recover(own).await?;
        Ok(match self.tells(Lie::OpensWhileClosed) {
            true => Recovery {
                closed_for: told,
                ..recovery
            },
            false => recovery,
        })
    }
}
