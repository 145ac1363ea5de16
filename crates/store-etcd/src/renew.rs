//! Renewing a session, and one grant with it: `extend`.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{KeyValue, MetadataStore};
use lock_spi::{
    Effect, Error, ErrorKind, FencingToken, Grant, Instant, LockKey, Result, SessionId,
};

use crate::codec::LockEntry;
use crate::core::{Core, covers};
use crate::ops::{Verify, lease};
use crate::session::Session;

/// A keepalive that nobody confirms is sent so often.
const TRIES: usize = 3;

/// What became of a renewal.
#[derive(Debug)]
pub(crate) enum Renewal {
    /// The session stands, and lives until then by a clock that started before it was renewed.
    Confirmed {
        until: Instant,
        /// The locks asked for, as they stand after the renewal.
        locks: Vec<Option<KeyValue>>,
    },
    /// The session is gone for good.
    Gone,
}

impl<M: MetadataStore> Core<M> {
    /// Renews a session and reads the locks after that.
    ///
    /// A keepalive alone proves nothing, in neither direction: a deposed leader answers as ever,
    /// and a member that lags knows no lease. It counts when a read that was sent after its answer
    /// shows the session in the same term of raft: then nobody else led when it was renewed, and
    /// who led later gave the lease its full time.
    pub(crate) async fn renew(
        &self,
        session: SessionId,
        limit: Duration,
        locks: &[LockKey],
    ) -> Result<Renewal> {
        for _ in 0..TRIES {
            let sent = self.runtime.now();
            let keep_alive = self.kv.lease_keep_alive_once(lease(session));
            let alive = self.call(limit, keep_alive).await.map_err(unconfirmed)?;
            let verify = Verify {
                keys: &self.keys,
                session,
                locks,
            };
            let answer = self.execute(limit, &verify).await.map_err(unconfirmed)?;
            self.admit(limit, answer.before, answer.header).await?;
            self.adopt_meta(answer.reply.meta.as_ref(), answer.header)?;
            if answer.reply.session.is_none() {
                return Ok(Renewal::Gone);
            }
            let ttl = u64::try_from(alive.ttl).unwrap_or_default();
            if ttl > 0 && alive.header.raft_term == answer.header.raft_term {
                return Ok(Renewal::Confirmed {
                    until: sent + Duration::from_secs(ttl),
                    locks: answer.reply.locks,
                });
            }
        }
        let message = "the session stands, but no leader confirmed that it was renewed";
        Err(Error::new(ErrorKind::Unavailable, Effect::Unknown, message))
    }

    /// Whether an own session is gone for good: closed, or over by its own deadline. One that is
    /// over is ended before that is said, and never kept alive again.
    pub(crate) async fn is_finished(&self, own: &Session) -> Result<bool> {
        if !own.is_over(self.runtime.now()) {
            return Ok(false);
        }
        self.close(own.id, own.limit).await?;
        Ok(true)
    }
}

fn unconfirmed(error: Error) -> Error {
    error.with_effect(Effect::Unknown)
}

pub(crate) async fn extend<M: MetadataStore>(
    core: Arc<Core<M>>,
    key: LockKey,
    token: FencingToken,
) -> Result<Option<Grant>> {
    let limit = core.config.request_timeout();
    core.ensure_standing(limit).await?;
    if !core.is_of_this_term(limit, token).await? {
        return Ok(None);
    }
    let session = match core.sessions.holding(token) {
        Some(own) => own.id,
        None => {
            let (found, header) = core.session_of(limit, &key, token).await?;
            let Some(session) = found else {
                covers(header, token)?;
                return Ok(None);
            };
            session
        }
    };
    let own = core.sessions.get(session);
    if let Some(own) = &own
        && core.is_finished(own).await?
    {
        return Ok(None);
    }
    let limit = own.as_ref().map_or(limit, |own| own.limit);
    let renewal = core
        .renew(session, limit, std::slice::from_ref(&key))
        .await?;
    let Renewal::Confirmed { until, locks } = renewal else {
        core.sessions.closed(session);
        return Ok(None);
    };
    if let Some(own) = &own {
        own.confirm(until);
    }
    let lock = locks.into_iter().next().flatten();
    let entry = lock.as_ref().map(LockEntry::read).transpose()?;
    let stands = entry.is_some_and(|entry| entry.token == token && entry.leased);
    if !stands || !core.is_of_this_term(limit, token).await? {
        if let Some(own) = &own
            && let Some(granted) = own.grant(token)
        {
            core.sessions.end(own, granted.attempt);
        }
        return Ok(None);
    }
    let until = own.as_ref().map_or(until, |own| own.deadline());
    Ok(Some(Grant {
        key,
        token,
        session,
        remaining: Some(until.saturating_since(core.runtime.now())),
    }))
}
