//! Keeping a session alive: `keep_alive`. What the database has of it beyond what the caller
//! accounts for is ended on the way.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use lock_spi::{AttemptId, KeepAliveRequest, KeptAlive, LockKey, Result};

use crate::calls::{Abandon, Keep, Kept};
use crate::core::{Core, unconfirmed};
use crate::session::Session;

/// So many attempts that nobody accounts for are ended at once.
const ENDED_AT_ONCE: usize = 4;

pub(crate) async fn keep_alive(
    core: Arc<Core>,
    request: KeepAliveRequest,
    since: u64,
) -> Result<Option<KeptAlive>> {
    let session = core.session(request.session).await.map_err(unconfirmed)?;
    let Some(session) = session else {
        return Ok(None);
    };
    let keep = Keep {
        namespace: core.namespace(),
        session: session.id,
        grants: &request.grants,
    };
    let answer = core.call(session.limit, &keep).await.map_err(unconfirmed)?;
    let Some(kept) = answer.reply else {
        core.sessions.closed(session.id);
        return Ok(None);
    };
    session.confirm(session.until(answer.sent, kept.remaining));
    let Kept { gone, late, .. } = kept;
    for gone in &gone {
        if let Some(granted) = session.grant(gone.token) {
            core.sessions.end(&session, granted.attempt, &granted.key);
        }
    }
    core.end_surplus(&session, &request, since).await;
    // What is left of the late ones was counted when the session was.
    let waited = core.runtime.now().saturating_since(answer.sent);
    let late = late
        .into_iter()
        .map(|(grant, left)| (grant, left.saturating_sub(waited)));
    Ok(Some(KeptAlive {
        remaining: session.remaining(core.runtime.now()),
        gone,
        late: late.collect(),
    }))
}

impl Core {
    /// Ends attempts that neither the caller nor a call at work accounts for. Where that fails it is
    /// done at the next renewal.
    async fn end_surplus(
        self: &Arc<Self>,
        session: &Session,
        request: &KeepAliveRequest,
        since: u64,
    ) {
        let listed = request.attempts.iter().copied().collect();
        let tokens = request.grants.iter().map(|grant| grant.token).collect();
        let surplus =
            session.with_attempts(|attempts| attempts.give_up_surplus(&listed, &tokens, since));
        let end = async |(key, attempt)| {
            if let Err(error) = self.end_attempt(session, &key, attempt).await {
                tracing::debug!(%error, "a surplus attempt stands until the next renewal");
            }
        };
        stream::iter(surplus)
            .for_each_concurrent(ENDED_AT_ONCE, end)
            .await;
    }

    /// Ends an attempt of an own session for good.
    pub(crate) async fn end_attempt(
        self: &Arc<Self>,
        session: &Session,
        key: &LockKey,
        attempt: AttemptId,
    ) -> Result<()> {
        let abandon = Abandon {
            namespace: self.namespace(),
            key,
            session: session.id,
            attempt,
        };
        let answer = self.call(session.limit, &abandon).await;
        let answer = answer.map_err(unconfirmed)?;
        self.sessions.end(session, attempt, key);
        self.wake(answer.reply);
        Ok(())
    }
}
