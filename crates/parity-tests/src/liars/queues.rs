//! Lies about places, and about waking who has one.

use lock_spi::{AttemptId, LockKey, LockStore, Result, SessionId, WaitRequest};

use super::{Lie, Lying};

/// What returns sooner had its reason before it was asked.
const AT_ONCE: std::time::Duration = std::time::Duration::from_millis(100);

impl<S: LockStore> Lying<S> {
    pub(super) async fn is_free(&self, key: &LockKey) -> Result<bool> {
        let info = self.store.read(&self.key(key)).await?;
        Ok(info.holder.is_none())
    }

    /// Takes the places of all others.
    pub(super) async fn evict_all_but(&self, key: &LockKey, attempt: AttemptId) -> Result<()> {
        let places = self.memory().places.clone();
        let others = places
            .iter()
            .filter(|place| place.key == *key && place.attempt != attempt);
        for place in others {
            let own = self.key(key);
            self.store
                .abandon(&own, place.session, place.attempt)
                .await?;
        }
        Ok(())
    }

    pub(super) async fn wait(&self, request: WaitRequest) -> Result<()> {
        if self.tells(Lie::NeverWakes) {
            return std::future::pending().await;
        }
        if self.tells(Lie::LeavesATraceOfWaiting) {
            self.open_hidden().await?;
        }
        let own = WaitRequest {
            key: self.key(&request.key),
            ..request
        };
        let asked = self.runtime.now();
        let answer = self.store.await_release(own).await;
        let took = self.runtime.now().saturating_since(asked);
        if took < AT_ONCE && self.tells(Lie::MissesEarlyReleases) {
            return std::future::pending().await;
        }
        answer
    }

    pub(super) async fn give_up(
        &self,
        key: &LockKey,
        session: SessionId,
        attempt: AttemptId,
    ) -> Result<()> {
        let again = !self.memory().abandoned.insert(attempt);
        if again && self.tells(Lie::AbandonsOnce) {
            let kind = lock_spi::ErrorKind::InvalidRequest;
            return Err(super::sessions::refused(kind, "it was given up before"));
        }
        let granted = self.memory().granted.contains_key(&(key.clone(), attempt));
        if granted && self.tells(Lie::AbandonsPlacesOnly) {
            return Ok(());
        }
        self.store.abandon(&self.key(key), session, attempt).await
    }
}
