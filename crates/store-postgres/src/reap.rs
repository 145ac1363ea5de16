//! Clearing what is dead: `reap_expired`.

use std::sync::{Arc, PoisonError};

use lock_spi::Result;

use crate::calls::Reap;
use crate::core::{Core, unconfirmed};

/// Clears a window of the lock rows, behind the one that was cleared last.
pub(crate) async fn reap_expired(core: Arc<Core>, limit: u32) -> Result<u32> {
    let Some(limit) = i32::try_from(limit).ok().filter(|limit| *limit > 0) else {
        return Ok(0);
    };
    let after = {
        let reaped_to = core.reaped_to.lock();
        reaped_to.unwrap_or_else(PoisonError::into_inner).take()
    };
    let reap = Reap {
        namespace: core.namespace(),
        limit,
        after: after.as_deref(),
    };
    let answer = core.call(core.config.request_timeout(), &reap).await;
    let reaped = answer.map_err(unconfirmed)?.reply;
    let reaped_to = core.reaped_to.lock();
    *reaped_to.unwrap_or_else(PoisonError::into_inner) = reaped.next;
    Ok(reaped.cleared)
}
