//! Keeping a session alive: `keep_alive`.

use std::sync::Arc;

use etcd_kv::MetadataStore;
use lock_spi::{Effect, KeepAliveRequest, KeptAlive, Result};

use crate::core::Core;
use crate::reconcile::Reconciliation;
use crate::renew::Renewal;

pub(crate) async fn keep_alive<M: MetadataStore>(
    core: Arc<Core<M>>,
    request: KeepAliveRequest,
    since: u64,
) -> Result<Option<KeptAlive>> {
    core.ensure_standing(core.config.request_timeout()).await?;
    let Some(session) = core.session(request.session).await? else {
        return Ok(None);
    };
    if core.is_finished(&session).await? {
        return Ok(None);
    }
    match core.renew(session.id, session.limit, &[]).await? {
        Renewal::Confirmed { until, .. } => session.confirm(until),
        Renewal::Gone => {
            core.sessions.closed(session.id);
            return Ok(None);
        }
    }
    let reconciliation = Reconciliation::new(&core, &session, &request, since);
    let gone = reconciliation.run().await;
    let gone = gone.map_err(|error| error.with_effect(Effect::Unknown))?;
    Ok(Some(KeptAlive {
        remaining: session.remaining(core.runtime.now()),
        gone,
        late: Vec::new(),
    }))
}
