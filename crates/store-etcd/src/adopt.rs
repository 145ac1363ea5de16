//! Taking over a session that another store object has opened.

use std::sync::Arc;

use etcd_kv::{Consistency, KeyValue, MetadataStore};
use lock_spi::{Effect, Error, ErrorKind, Result, SessionId, SessionLease};

use crate::codec::{SessionValue, Value};
use crate::core::{Core, ROUNDS};
use crate::error::not_now;
use crate::open::{describe, reopen};
use crate::ops::{Adopt, AdoptReply};
use crate::renew::Renewal;
use crate::session::Session;

pub(crate) async fn adopt_session<M: MetadataStore>(
    core: Arc<Core<M>>,
    session: SessionId,
) -> Result<Option<SessionLease>> {
    let limit = core.config.request_timeout();
    core.ensure_standing(limit).await?;
    let own = core.take_over(session).await?;
    Ok(own.map(|own| describe(&core, &own)))
}

impl<M: MetadataStore> Core<M> {
    /// Makes a session this store object's own; `None` when it is gone for good.
    async fn take_over(&self, session: SessionId) -> Result<Option<Arc<Session>>> {
        let limit = self.config.request_timeout();
        let mut found = self.read_session(session).await?;
        for _ in 0..ROUNDS {
            let Some(read) = found else {
                self.sessions.closed(session);
                return Ok(None);
            };
            let meta = self.ensure_open(limit).await?;
            let value = SessionValue::decode(&read.value)?;
            if value.instance == self.instance
                && let Some(own) = self.sessions.get(session)
            {
                return self.renewed(own).await;
            }
            let value = SessionValue {
                instance: self.instance,
                ..value
            };
            let adopt = Adopt {
                keys: &self.keys,
                session,
                meta: meta.revision,
                read: read.mod_revision,
                value: &value,
            };
            let reply = self.perform(limit, &adopt).await.map_err(unknown)?;
            found = match reply {
                AdoptReply::Adopted { epoch } => {
                    return self.keep_adopted(session, value, epoch).await;
                }
                AdoptReply::Changed { session } => session,
            };
            self.refresh_meta(limit).await.map_err(unknown)?;
        }
        Err(not_now("the session kept changing"))
    }

    /// Until it is renewed nothing is known of how long it lives.
    async fn keep_adopted(
        &self,
        session: SessionId,
        value: SessionValue,
        epoch: i64,
    ) -> Result<Option<Arc<Session>>> {
        let SessionValue { owner, ttl, .. } = value;
        let limit = self.config.limit_for(ttl);
        let until = match self.renew(session, limit, &[]).await? {
            Renewal::Confirmed { until, .. } => until,
            Renewal::Gone => {
                self.sessions.closed(session);
                return Ok(None);
            }
        };
        let adopted = Session::new((session, owner), (ttl, limit), until, Some(epoch));
        Ok(Some(self.sessions.adopt(adopted)))
    }

    /// It is this store object's own.
    async fn renewed(&self, own: Arc<Session>) -> Result<Option<Arc<Session>>> {
        match reopen(self, &own).await {
            Ok(_) => Ok(Some(own)),
            Err(error) if error.kind() == ErrorKind::SessionGone => Ok(None),
            Err(error) => Err(unknown(error)),
        }
    }

    async fn read_session(&self, session: SessionId) -> Result<Option<KeyValue>> {
        let limit = self.config.request_timeout();
        let before = self.seen();
        let get = self
            .kv
            .get(self.keys.session(session), Consistency::Linearizable);
        let answer = self.call(limit, get).await?;
        self.admit(limit, before, answer.header).await?;
        Ok(answer.kv)
    }
}

/// The session may be this store object's already.
fn unknown(error: Error) -> Error {
    error.with_effect(Effect::Unknown)
}
