use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, KeepAliveResponse, KeepAliveStream,
    KvError, LeaseGrant, LeaseId, MetadataStore, PutRequest, PutResponse, RangeRequest,
    RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest, WatchStream,
};
use store_etcd::EtcdClient;

/// A real etcd that remembers the transactions it was sent.
#[derive(Debug)]
pub(super) struct Recorder {
    server: EtcdClient,
    sent: Sent,
}

/// The transactions sent so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent(Arc<Mutex<Vec<Txn>>>);

impl Recorder {
    pub(super) fn new(server: EtcdClient) -> Self {
        let sent = Sent::default();
        Self { server, sent }
    }

    pub(super) fn sent(&self) -> Sent {
        self.sent.clone()
    }
}

impl Sent {
    /// What was sent since the last time.
    pub(super) fn take(&self) -> Vec<Txn> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, txn: Txn) {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.push(txn);
    }
}

#[async_trait]
impl MetadataStore for Recorder {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        self.server.get(key, consistency).await
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        self.server.range(request).await
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        self.server.put(request).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        self.server.delete(request).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        self.sent.add(txn.clone());
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
        self.server.lease_time_to_live(id).await
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        self.server.lease_revoke(id).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        self.server.watch(request).await
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        self.server.compact(revision).await
    }
}
