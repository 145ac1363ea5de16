//! The store: what `fencelock` asks, without `fencelock`.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use async_trait::async_trait;
use lock_spi::{
    AttemptId, FencingToken, InsertOutcome, InsertRequest, LockKey, LockStore, OpenSessionRequest,
    Owner, Payload, Queue, Runtime, SessionId, Ttl, WaitRequest,
};

use super::{Arm, Keys, Site, TTL};
use crate::hold::Hold;

struct Store<S> {
    store: S,
    session: SessionId,
    queue: Queue,
    runtime: Arc<dyn Runtime>,
    hold: Hold,
}

pub(crate) async fn of(store: impl LockStore, site: &Site) -> Result<Arc<dyn Arm>> {
    Ok(Arc::new(Store {
        session: open_session(&store, site).await?,
        store,
        queue: match site.keys {
            Keys::Distinct => Queue::Never,
            Keys::Hot | Keys::Held => Queue::Join,
        },
        runtime: Arc::clone(&site.runtime),
        hold: site.hold.clone(),
    }))
}

/// Opens a session that outlives the benchmark.
pub(crate) async fn open_session(store: &impl LockStore, site: &Site) -> Result<SessionId> {
    let session = SessionId::random(&*site.runtime);
    let request = OpenSessionRequest {
        session,
        owner: Owner::default(),
        ttl: Ttl::new(TTL)?,
    };
    store.open_session(request).await?;
    Ok(session)
}

impl<S: LockStore> Store<S> {
    async fn lock(&self, key: &LockKey) -> Result<FencingToken> {
        let &Self { session, queue, .. } = self;
        let attempt = AttemptId::random(&*self.runtime);
        loop {
            let request = InsertRequest {
                key: key.clone(),
                session,
                attempt,
                payload: Payload::default(),
                queue,
            };
            match self.store.try_insert(request).await? {
                InsertOutcome::Granted(grant) => return Ok(grant.token),
                InsertOutcome::Queued(place) => {
                    let request = WaitRequest {
                        key: key.clone(),
                        session,
                        attempt,
                        place: Some(place),
                    };
                    self.store.await_release(request).await?;
                }
                other => bail!("{key} was not granted: {other:?}"),
            }
        }
    }
}

#[async_trait]
impl<S: LockStore> Arm for Store<S> {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let key = LockKey::new(key)?;
        let token = self.lock(&key).await?;
        self.hold.keep().await;
        let ended = self.store.delete_if_owner(&key, token).await?;
        ensure!(ended, "{key} was lost");
        Ok(())
    }
}
