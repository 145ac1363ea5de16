//! Keys and tokens under other names than the store's own.

use lock_spi::{FencingToken, GrantRef, Holder, LockInfo, LockKey, LockStore};

use super::{Lie, Lying};

impl<S: LockStore> Lying<S> {
    /// The key that the store is asked for.
    pub(super) fn key(&self, key: &LockKey) -> LockKey {
        match self.tells(Lie::FoldsCase) {
            true => LockKey::new(key.as_str().to_lowercase()).unwrap_or_else(|_| key.clone()),
            false => key.clone(),
        }
    }

    /// The store's own token behind one that was told.
    pub(super) fn own_token(&self, key: &LockKey, told: FencingToken) -> FencingToken {
        let memory = self.memory();
        let known = memory.own.get(&(key.clone(), told));
        known.copied().unwrap_or(told)
    }

    /// What is told of a token of the store's own.
    pub(super) fn told_token(&self, key: &LockKey, own: FencingToken) -> FencingToken {
        let memory = self.memory();
        let known = memory.told.get(&(key.clone(), own));
        known.copied().unwrap_or(own)
    }

    /// From now on the store's own token is told as another one.
    pub(super) fn rename(&self, key: &LockKey, own: FencingToken, told: FencingToken) {
        let mut memory = self.memory();
        memory.own.insert((key.clone(), told), own);
        memory.told.insert((key.clone(), own), told);
    }

    pub(super) fn own_grant(&self, grant: &GrantRef) -> GrantRef {
        GrantRef {
            key: self.key(&grant.key),
            token: self.own_token(&grant.key, grant.token),
        }
    }

    pub(super) fn told_holder(&self, key: &LockKey, holder: Holder) -> Holder {
        let token = self.told_token(key, holder.token);
        let payload = match self.tells(Lie::LosesPayloads) {
            true => lock_spi::Payload::default(),
            false => holder.payload,
        };
        Holder {
            token,
            payload,
            ..holder
        }
    }

    pub(super) fn told_info(&self, asked: &LockKey, info: LockInfo) -> LockInfo {
        let holder = info.holder;
        LockInfo {
            key: asked.clone(),
            holder: holder.map(|holder| self.told_holder(asked, holder)),
            ..info
        }
    }
}
