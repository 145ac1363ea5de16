//! Opening a session.

use std::sync::Arc;

use lock_spi::{Error, OpenSessionRequest, Result, SessionLease};

use crate::calls::{Open, Opened};
use crate::close::close_session;
use crate::core::Core;
use crate::error::{invalid, not_now, session_gone};
use crate::session::Session;

pub(crate) async fn open_session(
    core: Arc<Core>,
    request: OpenSessionRequest,
) -> Result<SessionLease> {
    let OpenSessionRequest {
        session,
        owner,
        ttl,
    } = request;
    if core.sessions.was_closed(session) {
        return Err(closed());
    }
    core.close_deserted();
    let limit = core.config.limit_for(ttl);
    let open = Open {
        namespace: core.namespace(),
        session,
        instance: core.instance,
        owner: &owner,
        ttl,
    };
    let answer = core.call(limit, &open).await?;
    let remaining = match answer.reply {
        Opened::Open(remaining) => remaining,
        Opened::Gone => {
            core.sessions.closed(session);
            return Err(closed());
        }
        Opened::Foreign => return Err(invalid("the session was opened by another store object")),
        Opened::Closed => return Err(recovering()),
    };
    let opened = Session::new(session, (ttl, limit), answer.sent);
    let own = core.sessions.add(opened).ok_or_else(closed)?;
    own.confirm(own.until(answer.sent, remaining));
    Ok(SessionLease {
        session,
        ttl: own.ttl,
        remaining: own.remaining(core.runtime.now()),
    })
}

impl Core {
    /// Closes sessions that nobody has renewed for long, in the background: what is known of them is
    /// not to pile up.
    fn close_deserted(self: &Arc<Self>) {
        for deserted in self.sessions.deserted(self.runtime.now()) {
            let close = close_session(Arc::clone(self), deserted);
            self.runtime.spawn(Box::pin(async move {
                if let Err(error) = close.await {
                    tracing::debug!(%error, "a deserted session is closed later");
                }
            }));
        }
    }
}

fn closed() -> Error {
    session_gone("the session was closed; its id is never used again")
}

pub(crate) fn recovering() -> Error {
    not_now("the namespace is closed until its recovery is over")
}
