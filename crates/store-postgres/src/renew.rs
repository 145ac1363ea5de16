//! Renewing one grant: `extend`.

use std::sync::Arc;

use lock_spi::{FencingToken, Grant, LockKey, Result};

use crate::calls::Extend;
use crate::core::{Core, unconfirmed};

pub(crate) async fn extend(
    core: Arc<Core>,
    key: LockKey,
    token: FencingToken,
) -> Result<Option<Grant>> {
    let own = core.sessions.holding(token);
    let limit = core.limit_of(own.as_deref());
    let extend = Extend {
        namespace: core.namespace(),
        key: &key,
        token,
    };
    let answer = core.call(limit, &extend).await.map_err(unconfirmed)?;
    let Some(extended) = answer.reply else {
        if let Some(own) = own
            && let Some(granted) = own.grant(token).filter(|granted| granted.key == key)
        {
            core.sessions.end(&own, granted.attempt, &key);
        }
        return Ok(None);
    };
    let own = core.sessions.get(extended.session);
    let until = match &own {
        Some(own) => own.until(answer.sent, extended.remaining),
        None => answer.sent + extended.remaining,
    };
    if let Some(own) = own {
        own.confirm(until);
    }
    Ok(Some(Grant {
        key,
        token,
        session: extended.session,
        remaining: Some(until.saturating_since(core.runtime.now())),
    }))
}
