//! What applications use: a guard, acquired and released.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use fencelock::{Client, Release};
use lock_spi::LockStore;

use super::{Arm, Keys, Site};
use crate::hold::Hold;

struct Guards {
    client: Client,
    keys: Keys,
    hold: Hold,
}

pub(crate) fn of(store: impl LockStore, site: &Site) -> Result<Arc<dyn Arm>> {
    let client = Client::builder(store)
        .runtime(Arc::clone(&site.runtime))
        .default_wait(None)
        .build()?;
    let keys = site.keys;
    let hold = site.hold.clone();
    Ok(Arc::new(Guards { client, keys, hold }))
}

#[async_trait]
impl Arm for Guards {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let guard = match self.keys {
            Keys::Distinct => self.client.try_acquire(key).await?.guard(),
            Keys::Hot | Keys::Held => Some(self.client.acquire(key).await?),
        };
        let guard = guard.with_context(|| format!("{key} was not granted"))?;
        self.hold.keep().await;
        let released = guard.release().await?;
        ensure!(released == Release::Released, "{key} was lost");
        Ok(())
    }
}
