//! A way to a server that counts what goes over it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, KeepAliveResponse, KeepAliveStream,
    KvError, LeaseGrant, LeaseId, MetadataStore, Op, PutRequest, PutResponse, RangeRequest,
    RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest, WatchStream,
};
use futures_util::stream;
use lock_spi::Runtime;

#[derive(Clone, Debug)]
pub(crate) struct Counted<M> {
    server: M,
    counts: Arc<Counts>,
    watches: Watches,
}

/// What becomes of watches.
#[derive(Clone, Debug)]
pub(crate) enum Watches {
    Kept,
    /// Each begins so much later.
    Late(Arc<dyn Runtime>, Duration),
    /// They stand, and tell nothing.
    Deaf,
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
    watches: AtomicU64,
}

/// What went over it so far; renewals of leases do not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Calls {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) watches: u64,
}

impl Calls {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            watches: self.watches - before.watches,
        }
    }
}

impl<M> Counted<M> {
    pub(crate) fn new(server: M) -> Self {
        Self::with(Watches::Kept, server)
    }

    pub(crate) fn with(watches: Watches, server: M) -> Self {
        Self {
            server,
            counts: Arc::default(),
            watches,
        }
    }

    pub(crate) fn calls(&self) -> Calls {
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        Calls {
            reads: of(&self.counts.reads),
            writes: of(&self.counts.writes),
            watches: of(&self.counts.watches),
        }
    }
}

fn one_more(count: &AtomicU64) {
    count.fetch_add(1, Ordering::SeqCst);
}

#[async_trait]
impl<M: MetadataStore> MetadataStore for Counted<M> {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        one_more(&self.counts.reads);
        self.server.get(key, consistency).await
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        one_more(&self.counts.reads);
        self.server.range(request).await
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        one_more(&self.counts.writes);
        self.server.put(request).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        one_more(&self.counts.writes);
        self.server.delete(request).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        let mut ops = txn.then.iter().chain(&txn.otherwise);
        one_more(match ops.all(|op| matches!(op, Op::Range(_))) {
            true => &self.counts.reads,
            false => &self.counts.writes,
        });
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
        one_more(&self.counts.watches);
        match &self.watches {
            Watches::Kept => {}
            Watches::Late(runtime, delay) => runtime.sleep(*delay).await,
            Watches::Deaf => return Ok(WatchStream::new(stream::pending())),
        }
        self.server.watch(request).await
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        self.server.compact(revision).await
    }
}
