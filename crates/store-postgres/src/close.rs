//! Ending a session.

use std::sync::Arc;

use lock_spi::{Result, SessionId};

use crate::calls::Close;
use crate::core::{Core, unconfirmed};

pub(crate) async fn close_session(core: Arc<Core>, session: SessionId) -> Result<()> {
    let own = core.sessions.get(session);
    let limit = core.limit_of(own.as_deref());
    let close = Close {
        namespace: core.namespace(),
        session,
        instance: core.instance,
    };
    let answer = core.call(limit, &close).await.map_err(unconfirmed)?;
    core.sessions.closed(session);
    core.wake(answer.reply);
    Ok(())
}
