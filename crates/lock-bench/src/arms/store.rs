//! The store: what `fencelock` asks, without `fencelock`.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use async_trait::async_trait;
use lock_spi::{
    AttemptId, FencingToken, InsertOutcome, InsertRequest, LockKey, LockStore, Payload, Queue,
    Runtime, SessionId, WaitRequest,
};
use store_etcd::{EtcdClient, EtcdLockStore};

use super::{Arm, Keys, Site};

struct Store {
    store: EtcdLockStore<EtcdClient>,
    session: SessionId,
    queue: Queue,
    runtime: Arc<dyn Runtime>,
}

pub(super) async fn connect(site: &Site) -> Result<Arc<dyn Arm>> {
    let store = site.store(site.adaptor().await?, "store").await?;
    Ok(Arc::new(Store {
        session: site.session(&store).await?,
        store,
        queue: match site.keys {
            Keys::Distinct => Queue::Never,
            Keys::Hot => Queue::Join,
        },
        runtime: Arc::clone(&site.runtime),
    }))
}

impl Store {
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
impl Arm for Store {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let key = LockKey::new(key)?;
        let token = self.lock(&key).await?;
        let ended = self.store.delete_if_owner(&key, token).await?;
        ensure!(ended, "{key} was lost");
        Ok(())
    }
}
