//! Ending a grant from outside: `revoke`.

use std::sync::Arc;

use lock_spi::{LockOutcome, Result, RevokeRequest};

use crate::calls::{Revoke, Revoked};
use crate::core::Core;

pub(crate) async fn revoke(core: Arc<Core>, request: RevokeRequest) -> Result<LockOutcome> {
    let revoke = Revoke {
        namespace: core.namespace(),
        request: &request,
    };
    let answer = core.call(core.config.request_timeout(), &revoke).await?;
    let Revoked {
        outcome,
        lifted,
        wake,
    } = answer.reply;
    if lifted && let Some(floor) = outcome.new_token_floor {
        core.tell_lifted(&request.key, floor);
    }
    core.wake(wake);
    Ok(outcome)
}
