//! What applications use, each task in a process of its own as it were: a client with a store and
//! connections of its own for each.

use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;

use super::{Arm, Site, guards};

struct Clients(Vec<Arc<dyn Arm>>);

/// One for each task, over what `open` makes.
pub(crate) async fn of<S>(site: &Site, open: impl AsyncFn() -> Result<S>) -> Result<Arc<dyn Arm>>
where
    S: lock_spi::LockStore,
{
    let mut clients = Vec::new();
    for _ in 0..site.tasks {
        clients.push(guards::of(open().await?, site)?);
    }
    Ok(Arc::new(Clients(clients)))
}

#[async_trait]
impl Arm for Clients {
    async fn once(&self, task: u32, key: &str) -> Result<()> {
        let own = self.0.get(usize::try_from(task)?);
        own.context("a task without a client")?
            .once(task, key)
            .await
    }
}
