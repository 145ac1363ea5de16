//! Lies about ending a grant by order.

use lock_spi::{
    LockKey, LockOutcome, LockStore, Result, RevocationId, RevokeRequest, RevokeTarget,
};

use super::{Lie, Lying};

impl<S: LockStore> Lying<S> {
    pub(super) async fn end_by_order(&self, request: RevokeRequest) -> Result<LockOutcome> {
        let key = request.key.clone();
        if let Some(outcome) = self.in_name_only(&request).await? {
            return Ok(outcome);
        }
        let target = match request.target {
            RevokeTarget::Grant(_) if self.tells(Lie::RevokesWhoeverHolds) => RevokeTarget::Whoever,
            RevokeTarget::Grant(told) => RevokeTarget::Grant(self.own_token(&key, told)),
            RevokeTarget::Whoever => RevokeTarget::Whoever,
        };
        let id = match self.tells(Lie::RevokesAgain) {
            true => RevocationId::random(&*self.runtime),
            false => request.id,
        };
        let own = RevokeRequest {
            key: self.key(&key),
            target,
            id,
            ..request
        };
        let outcome = self.store.revoke(own).await?;
        Ok(self.told_outcome(&key, outcome))
    }

    /// What is told of a revoke that is not done.
    async fn in_name_only(&self, request: &RevokeRequest) -> Result<Option<LockOutcome>> {
        if !self.tells(Lie::RevokesInNameOnly) && !self.tells(Lie::LeavesFreeKeysAlone) {
            return Ok(None);
        }
        let info = self.store.read(&self.key(&request.key)).await?;
        Ok(match info.holder {
            Some(holder) if self.tells(Lie::RevokesInNameOnly) => Some(LockOutcome {
                revoked: true,
                previous_token: Some(self.told_token(&request.key, holder.token)),
                previous_owner: Some(holder.owner),
                new_token_floor: lock_spi::FencingToken::new(holder.token.as_u64() + 1).ok(),
            }),
            None if self.tells(Lie::LeavesFreeKeysAlone) => Some(LockOutcome {
                revoked: false,
                previous_token: None,
                previous_owner: None,
                new_token_floor: info.floor,
            }),
            _ => None,
        })
    }

    pub(super) fn told_outcome(&self, key: &LockKey, outcome: LockOutcome) -> LockOutcome {
        let previous = outcome.previous_token;
        LockOutcome {
            previous_token: previous.map(|own| self.told_token(key, own)),
            ..outcome
        }
    }
}
