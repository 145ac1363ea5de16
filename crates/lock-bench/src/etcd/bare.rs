//! The transactions of the store, sent by etcd-client directly: what the store and the client
//! cannot do without. They are recorded from the store itself, so that they are what it sends.

mod recorder;
mod template;

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use async_trait::async_trait;
use etcd_client::KvClient;
use etcd_kv::Txn;
use lock_spi::{AttemptId, InsertOutcome, InsertRequest, LockKey, LockStore, Payload, Queue};

use self::recorder::Recorder;
use self::template::Template;
use super::Server;
use super::server::open;
use crate::arms::{Arm, Site, store::open_session};

/// The key that the transactions are recorded for; another one takes its place each time.
const RECORDED: &str = "recorded";

struct Bare {
    client: KvClient,
    grant: Template,
    delete: Template,
}

pub(super) async fn connect(server: &Server, site: &Site) -> Result<Arc<dyn Arm>> {
    let recorder = Recorder::new(server.adaptor(site).await?);
    let sent = recorder.sent();
    let store = open(recorder, site, "bare").await?;
    let session = open_session(&store, site).await?;
    let key = LockKey::new(RECORDED)?;
    let request = InsertRequest {
        key: key.clone(),
        session,
        attempt: AttemptId::random(&*site.runtime),
        payload: Payload::default(),
        queue: Queue::Never,
    };
    sent.take();
    let InsertOutcome::Granted(grant) = store.try_insert(request).await? else {
        bail!("a free key was not granted");
    };
    let granting = only(sent.take())?;
    let ended = store.delete_if_owner(&key, grant.token).await?;
    ensure!(ended, "a grant was lost");
    let deleting = only(sent.take())?;
    let revision = i64::try_from(grant.token.counter())?;
    Ok(Arc::new(Bare {
        client: server.client().await?.kv_client(),
        grant: Template::new(granting, RECORDED, revision)?,
        delete: Template::new(deleting, RECORDED, revision)?,
    }))
}

/// The one transaction that an operation sends; with more, this arm would not be its like.
fn only(sent: Vec<Txn>) -> Result<Txn> {
    let [txn] = <[Txn; 1]>::try_from(sent)
        .ok()
        .context("the store did not send exactly one transaction")?;
    Ok(txn)
}

#[async_trait]
impl Arm for Bare {
    async fn once(&self, _: u32, key: &str) -> Result<()> {
        let mut client = self.client.clone();
        let revision = loop {
            let answer = client.txn(self.grant.of(key, 0)?).await?;
            if answer.succeeded() {
                break answer.header().context("no header")?.revision();
            }
        };
        let answer = client.txn(self.delete.of(key, revision)?).await?;
        ensure!(answer.succeeded(), "{key} was lost");
        Ok(())
    }
}
