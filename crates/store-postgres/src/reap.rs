//! Clearing what is dead: `reap_expired`.

use std::sync::{Arc, PoisonError};

use lock_spi::Result;

use crate::calls::{Reap, Reaped};
use crate::core::{Core, unconfirmed};

/// What one call clears or looks at, at the most: it holds the locks of these rows until it ends.
const WINDOW: u32 = 1_000;

/// Clears window after window, behind what was cleared last, until `limit` is reached or nothing is
/// left.
pub(crate) async fn reap_expired(core: Arc<Core>, limit: u32) -> Result<u32> {
    let mut cleared = 0;
    while cleared < limit {
        let reaped = reap(&core, (limit - cleared).min(WINDOW)).await?;
        cleared += reaped.cleared;
        if reaped.next.is_none() {
            break;
        }
    }
    Ok(cleared)
}

async fn reap(core: &Core, limit: u32) -> Result<Reaped> {
    let after = {
        let reaped_to = core.reaped_to.lock();
        reaped_to.unwrap_or_else(PoisonError::into_inner).take()
    };
    let reap = Reap {
        namespace: core.namespace(),
        limit: i32::try_from(limit).unwrap_or(i32::MAX),
        after: after.as_deref(),
    };
    let answer = core.call(core.config.request_timeout(), &reap).await;
    let reaped = answer.map_err(unconfirmed)?.reply;
    let reaped_to = core.reaped_to.lock();
    reaped_to
        .unwrap_or_else(PoisonError::into_inner)
        .clone_from(&reaped.next);
    Ok(reaped)
}
