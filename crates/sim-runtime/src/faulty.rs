use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Applied, Consistency, DeleteRequest, DeleteResponse, GetResponse, KeepAliveResponse,
    KeepAliveStream, KvError, KvErrorKind, LeaseGrant, LeaseId, MetadataStore, PutRequest,
    PutResponse, RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest,
    WatchStream,
};
use lock_spi::Runtime;
use tokio::sync::oneshot;

use crate::faults::{Ending, Fate, Faults, Kind};
use crate::streams;
use crate::weather::Weather;

/// The network between a store and its server: a [`MetadataStore`] that delays, loses and repeats.
///
/// Each call is sent on a task of its own, so that dropping its future does not unsend it. The
/// request travels, the server applies it, the reply travels; each journey takes its time, and
/// either may be lost. A loss shows as a reset connection or as nothing at all. Errors say what a
/// caller can know: [`Applied::No`] only of a call that was not sent, [`Applied::Unknown`] of every
/// other that has no answer.
///
/// What is not an answer of the network comes from the server unchanged. All draws come from the
/// runtime. [`Faulty::faults`] steers it.
pub struct Faulty<M> {
    server: Arc<M>,
    runtime: Arc<dyn Runtime>,
    faults: Faults,
}

impl<M: MetadataStore> Faulty<M> {
    /// Puts a network in this weather before `server`.
    #[must_use]
    pub fn new(server: M, runtime: Arc<dyn Runtime>, weather: Weather) -> Self {
        Self::steered_by(server, runtime, Faults::new(weather))
    }

    /// Puts a network before `server` that is steered together with others.
    #[must_use]
    pub fn steered_by(server: M, runtime: Arc<dyn Runtime>, faults: Faults) -> Self {
        Self {
            server: Arc::new(server),
            runtime,
            faults,
        }
    }

    /// What steers this network.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    fn reads<T, F, A>(
        &self,
        name: &'static str,
        call: F,
    ) -> impl Future<Output = Result<T, KvError>> + Send
    where
        T: Send + 'static,
        F: Fn(Arc<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, KvError>> + Send,
    {
        let changes = false;
        self.send(Kind { name, changes }, call)
    }

    fn changes<T, F, A>(
        &self,
        name: &'static str,
        call: F,
    ) -> impl Future<Output = Result<T, KvError>> + Send
    where
        T: Send + 'static,
        F: Fn(Arc<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, KvError>> + Send,
    {
        let changes = true;
        self.send(Kind { name, changes }, call)
    }

    async fn send<T, F, A>(&self, kind: Kind, call: F) -> Result<T, KvError>
    where
        T: Send + 'static,
        F: Fn(Arc<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, KvError>> + Send,
    {
        let fate = self.faults.decide(kind, &*self.runtime);
        let (sender, receiver) = oneshot::channel();
        let network = self.clone();
        let call = Arc::new(call);
        self.runtime.spawn(Box::pin(async move {
            if let Some(answer) = network.carry(fate, call).await {
                // The caller may have gone.
                drop(sender.send(answer));
            }
        }));
        match receiver.await {
            Ok(answer) => answer,
            // Silence: only the caller's own time limit ends it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Carries a request to the server and its reply back; `None` when the caller hears nothing.
    async fn carry<T, F, A>(&self, fate: Fate, call: Arc<F>) -> Option<Result<T, KvError>>
    where
        T: Send + 'static,
        F: Fn(Arc<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, KvError>> + Send,
    {
        if let Ending::Refused = fate.ending {
            return Some(Err(refused()));
        }
        let sent_into_partition = self.faults.requests_cut();
        self.travel(fate.there).await;
        self.faults.released().await;
        if let Ending::RequestLost { shown } = fate.ending {
            return shown.then(|| Err(reset()));
        }
        if sent_into_partition || self.faults.requests_cut() {
            return None;
        }
        if let Some(late) = fate.copy {
            self.deliver_copy(late, Arc::clone(&call));
        }
        let answer = call(Arc::clone(&self.server)).await;
        let answered_into_partition = self.faults.replies_cut();
        self.travel(fate.back).await;
        if answered_into_partition || self.faults.replies_cut() {
            return None;
        }
        match fate.ending {
            Ending::ReplyLost { shown } => shown.then(|| Err(reset())),
            Ending::Answered | Ending::Refused | Ending::RequestLost { .. } => Some(answer),
        }
    }

    fn deliver_copy<T, F, A>(&self, late: Duration, call: Arc<F>)
    where
        T: Send + 'static,
        F: Fn(Arc<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, KvError>> + Send,
    {
        let network = self.clone();
        self.runtime.spawn(Box::pin(async move {
            network.travel(late).await;
            if !network.faults.requests_cut() {
                drop(call(Arc::clone(&network.server)).await);
            }
        }));
    }

    async fn travel(&self, time: Duration) {
        if !time.is_zero() {
            self.runtime.sleep(time).await;
        }
    }
}

/// The call was not sent.
fn refused() -> KvError {
    KvError::new(KvErrorKind::Unavailable, Applied::No, "connection refused")
}

/// The connection broke, and the caller cannot tell whether before or after the server had it.
pub(crate) fn reset() -> KvError {
    let applied = Applied::Unknown;
    KvError::new(KvErrorKind::Unavailable, applied, "connection reset")
}

#[async_trait]
impl<M: MetadataStore> MetadataStore for Faulty<M> {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        self.reads("get", move |server| {
            let key = key.clone();
            async move { server.get(key, consistency).await }
        })
        .await
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        self.reads("range", move |server| {
            let request = request.clone();
            async move { server.range(request).await }
        })
        .await
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        self.changes("put", move |server| {
            let request = request.clone();
            async move { server.put(request).await }
        })
        .await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        self.changes("delete", move |server| {
            let request = request.clone();
            async move { server.delete(request).await }
        })
        .await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        self.changes("txn", move |server| {
            let txn = txn.clone();
            async move { server.txn(txn).await }
        })
        .await
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        self.changes("lease_grant", move |server| async move {
            server.lease_grant(id, ttl).await
        })
        .await
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        self.changes("lease_keep_alive_once", move |server| async move {
            server.lease_keep_alive_once(id).await
        })
        .await
    }

    /// Renewals are calls of [`lease_keep_alive_once`](Self::lease_keep_alive_once), so that each
    /// has a fate of its own.
    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        let network = self.clone();
        let renew = move || {
            let network = network.clone();
            async move { network.lease_keep_alive_once(id).await }
        };
        Ok(streams::renewals(
            &self.runtime,
            self.faults.clone(),
            period,
            renew,
        ))
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        self.reads("lease_time_to_live", move |server| async move {
            server.lease_time_to_live(id).await
        })
        .await
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        self.changes("lease_revoke", move |server| async move {
            server.lease_revoke(id).await
        })
        .await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        let stream = self
            .reads("watch", move |server| {
                let request = request.clone();
                async move { server.watch(request).await }
            })
            .await?;
        Ok(streams::changes(&self.runtime, self.faults.clone(), stream))
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        self.changes("compact", move |server| async move {
            server.compact(revision).await
        })
        .await
    }
}

impl<M> Clone for Faulty<M> {
    /// The same network.
    fn clone(&self) -> Self {
        Self {
            server: Arc::clone(&self.server),
            runtime: Arc::clone(&self.runtime),
            faults: self.faults.clone(),
        }
    }
}

impl<M: fmt::Debug> fmt::Debug for Faulty<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("server", &self.server)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
