//! Stored things as callers see them.

use etcd_kv::MetadataStore;
use lock_spi::{Holder, LockKey, LockOutcome, Revocation, RevocationId};

use crate::codec::{LockEntry, RevocationValue};
use crate::core::Core;

/// Who holds a lock; what is left of it is known for the sessions of this store object only.
pub(crate) fn holder<M: MetadataStore>(core: &Core<M>, entry: &LockEntry) -> Holder {
    let value = &entry.value;
    let own = core.sessions.get(value.session);
    Holder {
        token: entry.token,
        owner: value.owner.clone(),
        session: value.session,
        payload: value.payload.clone(),
        granted_at: value.granted_at,
        remaining: own.map(|own| own.remaining(core.runtime.now())),
    }
}

pub(crate) fn outcome(record: &RevocationValue) -> LockOutcome {
    LockOutcome {
        revoked: record.revoked,
        previous_token: record.previous_token,
        previous_owner: record.previous_owner.clone(),
        new_token_floor: Some(record.new_floor),
    }
}

pub(crate) fn revocation(key: LockKey, id: RevocationId, record: RevocationValue) -> Revocation {
    Revocation {
        id,
        key,
        outcome: outcome(&record),
        by: record.by,
        reason: record.reason,
        at: record.at,
    }
}
