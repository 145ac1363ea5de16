//! Ending grants and attempts: `delete_if_owner`, `abandon`, and grants that must not stand.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{Consistency, Header, MetadataStore};
use lock_spi::{AttemptId, Effect, ErrorKind, FencingToken, LockKey, Result, SessionId};

use crate::codec::{LockEntry, revision};
use crate::core::{Answer, Core, ROUNDS};
use crate::error::not_now;
use crate::ops::{Abandon, AbandonForm, Delete, DeleteReply};
use crate::session::{Releasing, Session};

impl<M: MetadataStore> Core<M> {
    /// Ends exactly this grant; whether this call did. It goes through raft, so its answer is never
    /// out of date.
    pub(crate) async fn end_grant(
        &self,
        limit: Duration,
        key: &LockKey,
        token: FencingToken,
        session: SessionId,
    ) -> Result<bool> {
        let mut meta = self.meta();
        for _ in 0..ROUNDS {
            if token.term() != meta.value.term {
                return Ok(false);
            }
            let delete = Delete {
                keys: &self.keys,
                key,
                token,
                session,
                meta: meta.revision,
            };
            match self.execute(limit, &delete).await?.reply {
                DeleteReply::Ended => {
                    self.demand.ended(key);
                    return Ok(true);
                }
                DeleteReply::Gone => return Ok(false),
                DeleteReply::MetaChanged(_) => meta = self.refresh_meta(limit).await?,
            }
        }
        Err(not_now("the state of the namespace kept changing"))
    }

    /// The session that a standing grant belongs to, by a read, and how recent that is.
    pub(crate) async fn session_of(
        &self,
        limit: Duration,
        key: &LockKey,
        token: FencingToken,
    ) -> Result<(Option<SessionId>, Header)> {
        let before = self.seen();
        let get = self.kv.get(self.keys.lock(key), Consistency::Linearizable);
        let answer = self.call(limit, get).await;
        let answer = answer.map_err(|error| error.with_effect(Effect::None))?;
        self.admit(limit, before, answer.header).await?;
        let named = answer.kv.filter(|kv| kv.mod_revision == revision(token));
        let entry = named.as_ref().map(LockEntry::read).transpose()?;
        Ok((entry.map(|entry| entry.value.session), answer.header))
    }
}

pub(crate) async fn delete_if_owner<M: MetadataStore>(
    core: Arc<Core<M>>,
    key: LockKey,
    token: FencingToken,
) -> Result<bool> {
    let limit = core.config.request_timeout();
    core.ensure_standing(limit).await?;
    if !core.is_of_this_term(limit, token).await? {
        return Ok(false);
    }
    let Some(own) = core.sessions.holding(token) else {
        let (session, _) = core.session_of(limit, &key, token).await?;
        return match session {
            Some(session) => core.end_grant(limit, &key, token, session).await,
            None => Ok(false),
        };
    };
    let Some(granted) = own.grant(token).filter(|granted| granted.key == key) else {
        return Ok(false);
    };
    // A renewal meanwhile must not end it as surplus, or nothing would be found here.
    let _releasing = Releasing::begin(&own, granted.attempt);
    // Its attempt has ended from here on: nothing more is sent for it.
    core.sessions.end(&own, granted.attempt);
    core.end_grant(own.limit, &key, token, own.id).await
}

pub(crate) async fn abandon<M: MetadataStore>(
    core: Arc<Core<M>>,
    key: LockKey,
    session: SessionId,
    attempt: AttemptId,
) -> Result<()> {
    let own = core.sessions.get(session);
    let limit = own
        .as_ref()
        .map_or(core.config.request_timeout(), |own| own.limit);
    if let Some(own) = &own {
        core.sessions.end(own, attempt);
    } else if core.sessions.was_closed(session) {
        return Ok(());
    }
    let left = surrender(&core, (own.as_deref(), limit), &key, session, attempt).await;
    let lock = match left {
        Ok(lock) => lock,
        // The lease is gone, and it has taken everything along.
        Err(error) if error.kind() == ErrorKind::SessionGone => return Ok(()),
        Err(error) => return Err(error.with_effect(Effect::Unknown)),
    };
    if let Some(entry) = lock.filter(|entry| entry.value.attempt == attempt) {
        let ended = core.end_grant(limit, &key, entry.token, entry.value.session);
        ended
            .await
            .map_err(|error| error.with_effect(Effect::Unknown))?;
    }
    Ok(())
}

/// Removes the ticket and whatever may still arrive; answers with the lock as it stands.
async fn surrender<M: MetadataStore>(
    core: &Core<M>,
    (own, limit): (Option<&Session>, Duration),
    key: &LockKey,
    session: SessionId,
    attempt: AttemptId,
) -> Result<Option<LockEntry>> {
    let wish = core.wish(key, session, attempt);
    let answered = own.is_some_and(|own| !own.with_epoch(|epoch| epoch.may_arrive(attempt)));
    let form = if answered {
        AbandonForm::Answered
    } else {
        AbandonForm::Unanswered
    };
    let sent = own.map_or(0, |own| own.with_epoch(|epoch| epoch.sent()));
    match core.execute(limit, &Abandon { wish, form }).await {
        Ok(Answer { reply, .. }) => {
            if let (Some(own), Some(epoch)) = (own, reply.epoch) {
                own.with_epoch(|state| state.raised(sent, epoch));
            }
            Ok(reply.lock)
        }
        Err(error) if error.kind() == ErrorKind::Exhausted => {
            let form = AbandonForm::Full;
            let answer = core.execute(limit, &Abandon { wish, form }).await?;
            if let Some(own) = own {
                own.with_epoch(|state| state.removed(sent));
            }
            Ok(answer.reply.lock)
        }
        Err(error) => Err(error),
    }
}

/// Ends a grant that must not stand, going on in the background when it cannot be done at once;
/// the effect is `None` when it is done.
pub(crate) async fn undo<M: MetadataStore>(
    core: &Arc<Core<M>>,
    session: &Arc<Session>,
    key: &LockKey,
    token: FencingToken,
) -> Effect {
    if core
        .end_grant(session.limit, key, token, session.id)
        .await
        .is_ok()
    {
        return Effect::None;
    }
    let give_up = core.runtime.now() + session.ttl.as_duration();
    let (core, session, key) = (Arc::clone(core), Arc::clone(session), key.clone());
    let runtime = Arc::clone(&core.runtime);
    runtime.spawn(Box::pin(async move {
        let (limit, id) = (session.limit, session.id);
        while core.runtime.now() < give_up
            && let Err(error) = core.end_grant(limit, &key, token, id).await
        {
            tracing::debug!(%error, %token, "a grant that must not stand stands for now");
            core.runtime.sleep(limit).await;
        }
    }));
    Effect::Unknown
}
