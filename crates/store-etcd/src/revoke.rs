//! Ending a grant from outside: `revoke`.

use std::sync::Arc;

use etcd_kv::{KeyValue, MetadataStore};
use lock_spi::{Effect, FencingToken, LockOutcome, Owner, Result, RevokeRequest, RevokeTarget};

use crate::codec::{LockEntry, RevocationValue, token};
use crate::core::{Core, ROUNDS};
use crate::error::not_now;
use crate::meta::Meta;
use crate::ops::{Revoke, Survey, Surveyed};
use crate::view::outcome;

pub(crate) async fn revoke<M: MetadataStore>(
    core: Arc<Core<M>>,
    request: RevokeRequest,
) -> Result<LockOutcome> {
    let limit = core.config.request_timeout();
    core.ensure_standing(limit).await?;
    let survey = || Survey {
        keys: &core.keys,
        key: &request.key,
        id: request.id,
    };
    let mut lost = None;
    for _ in 0..ROUNDS {
        let surveyed = core.perform(limit, &survey()).await;
        let surveyed = surveyed.map_err(|error| match lost {
            Some(_) => error.with_effect(Effect::Unknown),
            None => error,
        })?;
        if let Some(record) = &surveyed.record {
            return Ok(outcome(record));
        }
        let meta = Meta::read(surveyed.meta.as_ref())?;
        let lock = surveyed.lock.as_ref();
        let standing = lock.map(|kv| previous(kv, &meta)).transpose()?;
        if let RevokeTarget::Grant(target) = request.target
            && standing.as_ref().map(|(token, _)| *token) != Some(target)
        {
            return Ok(unchanged(&surveyed));
        }
        let record = record(&core, &request, &surveyed, &meta, standing)?;
        let revoke = Revoke {
            survey: survey(),
            lock: lock.map_or(0, |kv| kv.mod_revision),
            floor: surveyed.floor_revision,
            meta: meta.revision,
            record: &record,
        };
        match core.perform(limit, &revoke).await {
            Ok(true) => {
                core.demand.ended(&request.key);
                return Ok(outcome(&record));
            }
            Ok(false) => {}
            // The next survey shows whether it was done: the record and the lock are single-use.
            Err(error) if error.effect() == Effect::Unknown && lost.is_none() => lost = Some(error),
            Err(error) => {
                return Err(error.with_effect(lost.map_or(Effect::None, |_| Effect::Unknown)));
            }
        }
    }
    Err(lost.unwrap_or_else(|| not_now("others kept getting in between")))
}

/// The grant that stands; of a lock that cannot be read only the token is known.
fn previous(kv: &KeyValue, meta: &Meta) -> Result<(FencingToken, Option<Owner>)> {
    match LockEntry::read(kv) {
        Ok(entry) => Ok((entry.token, Some(entry.value.owner))),
        Err(_) => Ok((token(meta.value.term, kv.mod_revision)?, None)),
    }
}

fn unchanged(surveyed: &Surveyed) -> LockOutcome {
    LockOutcome {
        revoked: false,
        previous_token: None,
        previous_owner: None,
        new_token_floor: surveyed.floor,
    }
}

/// What the revoke will have done. Its floor is above everything granted by now, and no higher
/// than the revision of the revoke itself, so that every later grant is above it.
fn record<M: MetadataStore>(
    core: &Core<M>,
    request: &RevokeRequest,
    surveyed: &Surveyed,
    meta: &Meta,
    standing: Option<(FencingToken, Option<Owner>)>,
) -> Result<RevocationValue> {
    let above_all = token(meta.value.term, surveyed.revision + 1)?;
    let (previous_token, previous_owner) = standing.unzip();
    Ok(RevocationValue {
        by: request.by.clone(),
        reason: request.reason.clone(),
        at: core.runtime.wall_clock(),
        revoked: previous_token.is_some(),
        previous_token,
        previous_owner: previous_owner.flatten(),
        new_floor: surveyed
            .floor
            .map_or(above_all, |floor| floor.max(above_all)),
    })
}
