//! `Arc`, `Box` and references to a store are stores.

use std::sync::Arc;

use async_trait::async_trait;

use crate::admin::StoreAdmin;
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::id::{AttemptId, SessionId};
use crate::outcome::{
    Grant, InsertOutcome, KeptAlive, LockInfo, LockOutcome, Page, Revocation, SessionLease,
};
use crate::request::{
    InsertRequest, KeepAliveRequest, OpenSessionRequest, PageRequest, RevokeRequest, WaitRequest,
};
use crate::store::LockStore;
use crate::text::{KeyPrefix, LockKey};
use crate::token::FencingToken;

macro_rules! forward {
    ($pointer:ty) => {
        // A method that is forgotten here would fall back on a default, if there ever was one.
        #[deny(clippy::missing_trait_methods)]
        #[async_trait]
        impl<S: LockStore + ?Sized> LockStore for $pointer {
            fn descriptor(&self) -> Descriptor {
                S::descriptor(self)
            }

            async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
                S::open_session(self, request).await
            }

            async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
                S::adopt_session(self, session).await
            }

            async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
                S::keep_alive(self, request).await
            }

            async fn close_session(&self, session: SessionId) -> Result<()> {
                S::close_session(self, session).await
            }

            async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
                S::try_insert(self, request).await
            }

            async fn await_release(&self, request: WaitRequest) -> Result<()> {
                S::await_release(self, request).await
            }

            async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
                S::extend(self, key, token).await
            }

            async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
                S::delete_if_owner(self, key, token).await
            }

            async fn abandon(
                &self,
                key: &LockKey,
                session: SessionId,
                attempt: AttemptId,
            ) -> Result<()> {
                S::abandon(self, key, session, attempt).await
            }

            async fn read(&self, key: &LockKey) -> Result<LockInfo> {
                S::read(self, key).await
            }

            async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>> {
                S::list(self, prefix, page).await
            }

            async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
                S::revoke(self, request).await
            }

            async fn revocations(
                &self,
                key: &LockKey,
                page: PageRequest,
            ) -> Result<Page<Revocation>> {
                S::revocations(self, key, page).await
            }

            async fn reap_expired(&self, limit: u32) -> Result<u32> {
                S::reap_expired(self, limit).await
            }

            fn admin(&self) -> Option<&dyn StoreAdmin> {
                S::admin(self)
            }
        }
    };
}

forward!(Arc<S>);
forward!(Box<S>);
forward!(&'static S);

#[cfg(test)]
mod tests {
    use super::*;

    fn is_store<S: LockStore>() {}

    #[test]
    fn pointers_to_stores_are_stores() {
        is_store::<Arc<dyn LockStore>>();
        is_store::<Box<dyn LockStore>>();
        is_store::<&'static dyn LockStore>();
    }
}
