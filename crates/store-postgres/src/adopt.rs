//! Taking over a session that another store object has opened.

use std::sync::Arc;

use lock_spi::{Result, SessionId, SessionLease};

use crate::calls::Adopt;
use crate::core::Core;
use crate::session::Session;

pub(crate) async fn adopt_session(
    core: Arc<Core>,
    session: SessionId,
) -> Result<Option<SessionLease>> {
    let adopt = Adopt {
        namespace: core.namespace(),
        session,
        instance: core.instance,
    };
    let answer = core.call(core.config.request_timeout(), &adopt).await?;
    let Some(adopted) = answer.reply else {
        core.sessions.closed(session);
        return Ok(None);
    };
    let limit = core.config.limit_for(adopted.ttl);
    let taken = Session::new(session, (adopted.ttl, limit), answer.sent);
    let own = core.sessions.adopt(taken);
    own.confirm(own.until(answer.sent, adopted.remaining));
    Ok(Some(SessionLease {
        session,
        ttl: own.ttl,
        remaining: own.remaining(core.runtime.now()),
    }))
}
