//! Lies about renewing one grant and about releasing it.

use lock_spi::{
    AttemptId, ErrorKind, FencingToken, Grant, InsertOutcome, InsertRequest, LockKey, LockStore,
    Payload, Queue, Result,
};

use super::sessions::refused;
use super::{Lie, Lying};

impl<S: LockStore> Lying<S> {
    pub(super) async fn renew(&self, key: &LockKey, told: FencingToken) -> Result<Option<Grant>> {
        let token = match self.tells(Lie::ExtendsWhateverStands) {
            true => self.standing(key).await?.unwrap_or(told),
            false => self.own_token(key, told),
        };
        let beside = !self.memory().extending.insert(token);
        if beside && self.tells(Lie::ExtendsOneAtATime) {
            return Err(refused(ErrorKind::Unavailable, "one at a time"));
        }
        let answer = self.store.extend(&self.key(key), token).await;
        self.memory().extending.remove(&token);
        let grant = match answer {
            Err(_) if self.tells(Lie::TakesSilenceForLoss) => None,
            Ok(None) if self.tells(Lie::ExtendsByUpsert) => self.upsert(key, token).await?,
            answer => answer?,
        };
        let Some(grant) = grant else {
            return Ok(None);
        };
        let token = match self.tells(Lie::ChangesTokensWhenExtended) {
            true => {
                let next = FencingToken::new(told.as_u64() + 1)?;
                self.rename(key, token, next);
                next
            }
            false => told,
        };
        let key = key.clone();
        Ok(Some(Grant {
            key,
            token,
            ..grant
        }))
    }

    /// Makes anew what is gone.
    async fn upsert(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        let Some(session) = self.memory().granted_to.get(&token).copied() else {
            return Ok(None);
        };
        let request = InsertRequest {
            key: self.key(key),
            session,
            attempt: AttemptId::random(&*self.runtime),
            payload: Payload::default(),
            queue: Queue::Never,
        };
        Ok(match self.store.try_insert(request).await {
            Ok(InsertOutcome::Granted(grant)) => Some(grant),
            _ => None,
        })
    }

    pub(super) async fn release(&self, key: &LockKey, told: FencingToken) -> Result<bool> {
        if self.tells(Lie::StopsWhenDropped) {
            self.runtime
                .sleep(std::time::Duration::from_millis(1))
                .await;
        }
        let any = self.tells(Lie::ReleasesByKey) || self.tells(Lie::ReleasesForAnybody);
        let token = match any {
            true => self.standing(key).await?.unwrap_or(told),
            false => self.own_token(key, told),
        };
        match self.store.delete_if_owner(&self.key(key), token).await {
            Ok(false) if self.tells(Lie::SaysReleasedTwice) => {
                Ok(self.memory().granted_to.contains_key(&token))
            }
            Err(_) if self.tells(Lie::TakesSilenceForNotHeld) => Ok(false),
            answer => answer,
        }
    }

    /// The token of whichever grant stands.
    async fn standing(&self, key: &LockKey) -> Result<Option<FencingToken>> {
        let info = self.store.read(&self.key(key)).await?;
        Ok(info.holder.map(|holder| holder.token))
    }
}
