//! Opening a session.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{KvErrorKind, MetadataStore};
use lock_spi::{Effect, Error, ErrorKind, Instant, OpenSessionRequest, Result, SessionLease, Ttl};

use crate::codec::SessionValue;
use crate::core::{Core, ROUNDS};
use crate::error::{from_kv, invalid, not_now, session_gone, timed_out};
use crate::ops::{Open, OpenReply, lease};
use crate::renew::Renewal;
use crate::session::Session;

/// The lease of a session that is being opened.
struct Leased {
    ttl: Ttl,
    /// Until when it lives; `None` when it was granted before, and only a renewal tells.
    until: Option<Instant>,
}

pub(crate) async fn open_session<M: MetadataStore>(
    core: Arc<Core<M>>,
    request: OpenSessionRequest,
) -> Result<SessionLease> {
    let limit = core.config.limit_for(request.ttl);
    core.ensure_standing(limit).await?;
    if core.sessions.was_closed(request.session) {
        return Err(closed());
    }
    if let Some(own) = core.sessions.get(request.session) {
        return reopen(&core, &own).await;
    }
    core.ensure_open(limit).await?;
    let leased = core.lease(limit, &request).await?;
    let (epoch, until) = core.write_session(limit, &request, leased.until).await?;
    let OpenSessionRequest { session, owner, .. } = request;
    let limit = core.config.limit_for(leased.ttl);
    let opened = Session::new((session, owner), (leased.ttl, limit), until, epoch);
    let Some(own) = core.sessions.add(opened) else {
        return Err(closed());
    };
    own.confirm(until);
    Ok(describe(&core, &own))
}

fn closed() -> Error {
    session_gone("the session was closed; its id is never used again")
}

pub(crate) fn describe<M: MetadataStore>(core: &Core<M>, own: &Session) -> SessionLease {
    SessionLease {
        session: own.id,
        ttl: own.ttl,
        remaining: own.remaining(core.runtime.now()),
    }
}

/// The session was opened before: it is renewed, so that what is left of it is known.
pub(crate) async fn reopen<M: MetadataStore>(
    core: &Core<M>,
    own: &Session,
) -> Result<SessionLease> {
    if core.is_finished(own).await? {
        return Err(closed());
    }
    match core.renew(own.id, own.limit, &[]).await? {
        Renewal::Confirmed { until, .. } => own.confirm(until),
        Renewal::Gone => {
            core.sessions.closed(own.id);
            return Err(closed());
        }
    }
    Ok(describe(core, own))
}

impl<M: MetadataStore> Core<M> {
    async fn lease(&self, limit: Duration, request: &OpenSessionRequest) -> Result<Leased> {
        let sent = self.runtime.now();
        let seconds = i64::try_from(request.ttl.as_secs_ceil()).unwrap_or(i64::MAX);
        let grant = self.kv.lease_grant(lease(request.session), seconds);
        let answer = self.runtime.timeout(limit, grant).await;
        match answer.map_err(timed_out)? {
            Ok(granted) => {
                let ttl = ttl_of(granted.ttl)?;
                let until = Some(sent + ttl.as_duration());
                Ok(Leased { ttl, until })
            }
            // Granted by an earlier call whose answer was lost: the ttl is the one asked for then.
            Err(error) if error.kind() == KvErrorKind::LeaseExists => {
                let known = self.kv.lease_time_to_live(lease(request.session));
                let known = self.call(limit, known).await.map_err(unknown)?;
                if known.ttl < 0 {
                    let error = not_now("the lease of an earlier call has expired just now");
                    return Err(unknown(error));
                }
                let ttl = ttl_of(known.granted_ttl)?;
                Ok(Leased { ttl, until: None })
            }
            Err(error) => Err(from_kv(error)),
        }
    }

    /// Writes the session and answers with its epoch and until when it lives.
    async fn write_session(
        &self,
        limit: Duration,
        request: &OpenSessionRequest,
        until: Option<Instant>,
    ) -> Result<(Option<i64>, Instant)> {
        let value = SessionValue {
            owner: request.owner.clone(),
            ttl: request.ttl,
            opened_at: self.runtime.wall_clock(),
            instance: self.instance,
        };
        for _ in 0..ROUNDS {
            // A lease without a session is nothing: it ends by itself.
            let meta = self.ensure_open(limit).await?;
            let open = Open {
                keys: &self.keys,
                session: request.session,
                meta: meta.revision,
                value: &value,
            };
            let (epoch, first) = match self.perform(limit, &open).await.map_err(unknown)? {
                OpenReply::Opened { epoch } => (Some(epoch), true),
                OpenReply::Stands { value, .. } if value.instance != self.instance => {
                    return Err(invalid("the session was opened by another store object"));
                }
                OpenReply::Stands { epoch, .. } => ((epoch > 0).then_some(epoch), false),
                OpenReply::MetaChanged(_) => {
                    self.refresh_meta(limit).await.map_err(unknown)?;
                    continue;
                }
            };
            if let Some(until) = until.filter(|_| first) {
                return Ok((epoch, until));
            }
            return match self.renew(request.session, limit, &[]).await? {
                Renewal::Confirmed { until, .. } => Ok((epoch, until)),
                Renewal::Gone => {
                    self.sessions.closed(request.session);
                    Err(closed())
                }
            };
        }
        Err(not_now("the state of the namespace kept changing"))
    }
}

/// A lease was granted, so something did happen; what is known to be gone stays definite.
fn unknown(error: Error) -> Error {
    match error.kind() {
        ErrorKind::SessionGone => error,
        _ => error.with_effect(Effect::Unknown),
    }
}

/// The ttl that the server granted, as what it is: whole seconds, within the bounds of every ttl.
fn ttl_of(seconds: i64) -> Result<Ttl> {
    let seconds = u64::try_from(seconds).unwrap_or_default();
    Ttl::from_secs(seconds).map_err(|source| {
        let message = "the server granted a lease that no session can have";
        Error::new(ErrorKind::Protocol, Effect::Unknown, message).with_source(source)
    })
}
