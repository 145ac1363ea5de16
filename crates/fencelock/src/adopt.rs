//! Taking over what another process has handed over.

use std::sync::Arc;

use crate::backoff::Pauses;
use crate::error::{Error, Result};
use crate::grant::Grant;
use crate::guard::Guard;
use crate::holding::Renewal;
use crate::lost::{Lost, LostReason};
use crate::session::{Opened, Phase};
use crate::sessions::Sessions;
use crate::timing::Timing;

/// Takes a lock over. Dropped on its way, it gives the lock back: its session is kept for nobody.
pub(crate) async fn adopt(sessions: &Arc<Sessions>, timing: Timing, grant: Grant) -> Result<Guard> {
    let occupied = sessions.lines().occupy(&grant.key);
    let open = sessions.adopt(timing, &grant)?;
    let session = Arc::clone(open.session());
    let Grant { key, token, .. } = grant;
    let lost = Lost {
        key: key.clone(),
        token,
        reason: LostReason::SessionClosed,
    };
    match session.opened().await {
        Opened::Yes => {}
        Opened::Failed(error) => return Err(error),
        Opened::Over => return Err(lost.into()),
    }
    let mut pauses = Pauses::new(timing.first_pause(), timing.renew_every);
    loop {
        let (sent, key) = (session.now(), key.clone());
        let answer = session
            .backend
            .call(timing.call_limit(), move |store| async move {
                store.extend(&key, token).await
            })
            .await;
        match answer {
            Ok(Some(grant)) => {
                let held = open.hold(grant, sent, Renewal::Kept, occupied);
                return held.map(Guard::new).ok_or_else(|| lost.into());
            }
            Ok(None) => return Err(lost.into()),
            Err(error) if !error.is_retryable() => return Err(Error::from(error)),
            Err(error) if session.phase() != Phase::Open => return Err(Error::from(error)),
            Err(_) => {}
        }
        let runtime = &session.backend.runtime;
        tokio::select! {
            biased;
            () = session.reached(Phase::Ending) => return Err(lost.into()),
            () = runtime.sleep(pauses.next(&**runtime)) => {}
        }
    }
}
