//! A way to a cluster that loses its leader now and then: whoever only looks on sees nothing of
//! that.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Compare, Consistency, DeleteRequest, DeleteResponse, GetResponse, KeepAliveResponse,
    KeepAliveStream, KvError, KvErrorKind, LeaseGrant, LeaseId, MetadataStore, OpResponse,
    PutRequest, PutResponse, RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse,
    WatchRequest, WatchResponse, WatchStream,
};
use futures_util::{StreamExt, stream};
use lock_spi::Runtime;

/// How long a cluster may be without a leader.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Repeats reads, puts and deletions, and resumes watches. Transactions and leases go straight
/// through.
#[derive(Clone, Debug)]
pub(crate) struct Patient<M> {
    server: M,
    runtime: Arc<dyn Runtime>,
}

impl<M: MetadataStore + Clone> Patient<M> {
    pub(crate) fn new(server: M, runtime: Arc<dyn Runtime>) -> Self {
        Self { server, runtime }
    }

    async fn insist<T, F>(&self, call: impl Fn(M) -> F + Send) -> Result<T, KvError>
    where
        F: Future<Output = Result<T, KvError>> + Send,
        T: Send,
    {
        let give_up = self.runtime.now() + LIMIT;
        loop {
            let answer = call(self.server.clone()).await;
            let waits = answer.as_ref().is_err_and(is_transient);
            if !waits || self.runtime.now() >= give_up {
                return answer;
            }
            self.runtime.sleep(PAUSE).await;
        }
    }
}

fn is_transient(error: &KvError) -> bool {
    matches!(
        error.kind(),
        KvErrorKind::NoLeader | KvErrorKind::Unavailable
    )
}

#[async_trait]
impl<M: MetadataStore + Clone> MetadataStore for Patient<M> {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        self.insist(|server| {
            let key = key.clone();
            async move { server.get(key, consistency).await }
        })
        .await
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        self.insist(|server| {
            let request = request.clone();
            async move { server.range(request).await }
        })
        .await
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        self.insist(|server| {
            let request = request.clone();
            async move { server.put(request).await }
        })
        .await
    }

    /// A mark that is put with it tells which of the requests deleted.
    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        let mark = Bytes::from(format!("deleted-{:016x}", self.runtime.random()));
        let txn = Txn::when([Compare::create_revision(mark.clone(), 0)])
            .then([request.into(), PutRequest::new(mark.clone(), "").into()])
            .otherwise([RangeRequest::key(mark).into()]);
        let answer = self.insist(|server| {
            let txn = txn.clone();
            async move { server.txn(txn).await }
        });
        let answer = answer.await?;
        let mut header = answer.header;
        match answer.responses.into_iter().next() {
            Some(OpResponse::Delete(deleted)) => Ok(deleted),
            Some(OpResponse::Range(mark)) => {
                header.revision = mark.kvs[0].mod_revision;
                Ok(DeleteResponse {
                    header,
                    deleted: 1,
                    prev_kvs: Vec::new(),
                })
            }
            other => panic!("an answer to something else: {other:?}"),
        }
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        self.server.txn(txn).await
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        self.server.lease_grant(id, ttl).await
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        self.server.lease_keep_alive_once(id).await
    }

    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        self.server.lease_keep_alive(id, period).await
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        self.insist(|server| async move { server.lease_time_to_live(id).await })
            .await
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        self.insist(|server| async move { server.lease_revoke(id).await })
            .await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        let from = match request.start {
            Some(from) => from,
            None => {
                let now = self.get("now".into(), Consistency::Linearizable).await?;
                now.header.revision + 1
            }
        };
        let watched = Watched {
            patient: self.clone(),
            request,
            from,
            watch: None,
        };
        Ok(WatchStream::new(stream::unfold(watched, Watched::next)))
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        self.server.compact(revision).await
    }
}

/// A watch that goes on where it broke.
struct Watched<M> {
    patient: Patient<M>,
    request: WatchRequest,
    /// The first revision that was not told.
    from: i64,
    watch: Option<WatchStream>,
}

impl<M: MetadataStore + Clone> Watched<M> {
    async fn watch(&mut self) -> Result<WatchStream, KvError> {
        if let Some(watch) = self.watch.take() {
            return Ok(watch);
        }
        let request = WatchRequest {
            start: Some(self.from),
            ..self.request.clone()
        };
        let begun = self.patient.insist(|server| {
            let request = request.clone();
            async move { server.watch(request).await }
        });
        begun.await
    }

    async fn next(mut self) -> Option<(Result<WatchResponse, KvError>, Self)> {
        loop {
            let mut watch = match self.watch().await {
                Ok(watch) => watch,
                Err(error) => return Some((Err(error), self)),
            };
            match watch.next().await {
                Some(Ok(response)) => {
                    if let Some(last) = response.events.last() {
                        self.from = last.kv.mod_revision + 1;
                    }
                    self.watch = Some(watch);
                    return Some((Ok(response), self));
                }
                Some(Err(error)) if !is_transient(&error) => return Some((Err(error), self)),
                Some(Err(_)) | None => self.patient.runtime.sleep(PAUSE).await,
            }
        }
    }
}
