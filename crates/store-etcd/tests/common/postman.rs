use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Applied, Consistency, DeleteRequest, DeleteResponse, GetResponse, KeepAliveResponse,
    KeepAliveStream, KvError, KvErrorKind, LeaseGrant, LeaseId, MetadataStore, Op, PutRequest,
    PutResponse, RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest,
    WatchStream,
};
use etcd_mock::MockStore;

/// Carries requests to a server, and does to single ones what a test asks for.
#[derive(Clone, Debug)]
pub(crate) struct Postman<M = MockStore> {
    server: M,
    /// Where keepalives go.
    keep_alives: M,
    orders: Arc<Mutex<Orders>>,
    alter: fn(&mut Txn),
}

#[derive(Debug, Default)]
struct Orders {
    next: Vec<Order>,
    bag: Vec<Txn>,
    deposed: u32,
    unknown: u32,
    full: bool,
    lag: i64,
    sent: Vec<Txn>,
}

/// What happens to one writing transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// It is kept, and nobody hears of it.
    Keep,
    /// It is applied, and nobody hears of it.
    LoseReply,
    /// Nothing.
    Pass,
}

impl<M: MetadataStore + Clone> Postman<M> {
    pub(crate) fn new(server: M) -> Self {
        Self::altering(server, |_| {})
    }

    /// One who does this to every transaction, whatever else happens to it.
    pub(crate) fn altering(server: M, alter: fn(&mut Txn)) -> Self {
        Self {
            keep_alives: server.clone(),
            server,
            orders: Arc::default(),
            alter,
        }
    }

    /// Keepalives go another way from now on.
    pub(crate) fn with_keep_alives_by(mut self, other: M) -> Self {
        self.keep_alives = other;
        self
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap()
    }

    /// What happens to the next transactions that may write, in their order.
    pub(crate) fn next(&self, orders: &[Order]) {
        self.orders().next = orders.iter().rev().copied().collect();
    }

    /// Delivers what was kept; how many of them succeeded.
    pub(crate) async fn deliver(&self) -> usize {
        let bag = std::mem::take(&mut self.orders().bag);
        let mut succeeded = 0;
        for txn in bag {
            let answer = self.server.txn(txn).await;
            succeeded += usize::from(answer.is_ok_and(|answer| answer.succeeded));
        }
        succeeded
    }

    /// The next keepalives are answered by a leader that was deposed: as ever, in its own term.
    pub(crate) fn depose(&self, keep_alives: u32) {
        self.orders().deposed = keep_alives;
    }

    /// The next keepalives are answered by a member that does not know the lease.
    pub(crate) fn forget_leases(&self, keep_alives: u32) {
        self.orders().unknown = keep_alives;
    }

    /// The store is full: whatever would put is applied, or not, and refused.
    pub(crate) fn fill(&self, full: bool) {
        self.orders().full = full;
    }

    /// The next transaction that only reads is answered by a member that is so many revisions back.
    pub(crate) fn lag(&self, revisions: i64) {
        self.orders().lag = revisions;
    }

    /// The transactions that were sent so far.
    pub(crate) fn sent(&self) -> Vec<Txn> {
        self.orders().sent.clone()
    }
}

fn may_write(txn: &Txn) -> bool {
    let mut ops = txn.then.iter().chain(&txn.otherwise);
    ops.any(|op| !matches!(op, Op::Range(_)))
}

fn may_put(txn: &Txn) -> bool {
    let mut ops = txn.then.iter().chain(&txn.otherwise);
    ops.any(|op| matches!(op, Op::Put(_)))
}

#[async_trait]
impl<M: MetadataStore + Clone> MetadataStore for Postman<M> {
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

    async fn txn(&self, mut txn: Txn) -> Result<TxnResponse, KvError> {
        (self.alter)(&mut txn);
        let order = {
            let mut orders = self.orders();
            orders.sent.push(txn.clone());
            if orders.full && may_put(&txn) {
                let message = "database space exceeded";
                return Err(KvError::new(
                    KvErrorKind::NoSpace,
                    Applied::Unknown,
                    message,
                ));
            }
            let order = if may_write(&txn) {
                orders.next.pop()
            } else {
                None
            };
            if let Some(Order::Keep) = order {
                orders.bag.push(txn.clone());
            }
            order.unwrap_or(Order::Pass)
        };
        match order {
            Order::Keep => std::future::pending().await,
            Order::LoseReply => {
                drop(self.server.txn(txn).await);
                std::future::pending().await
            }
            Order::Pass => {
                let lag = match may_write(&txn) {
                    true => 0,
                    false => std::mem::take(&mut self.orders().lag),
                };
                let mut answer = self.server.txn(txn).await?;
                answer.header.revision -= lag;
                Ok(answer)
            }
        }
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        self.server.lease_grant(id, ttl).await
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        let (deposed, unknown) = {
            let mut orders = self.orders();
            let taken = (orders.deposed > 0, orders.unknown > 0);
            orders.deposed = orders.deposed.saturating_sub(1);
            orders.unknown = orders.unknown.saturating_sub(1);
            taken
        };
        if deposed || unknown {
            let left = self.server.lease_time_to_live(id).await?;
            let mut header = left.header;
            header.raft_term -= u64::from(deposed);
            let ttl = if unknown { 0 } else { left.granted_ttl };
            return Ok(KeepAliveResponse { header, id, ttl });
        }
        self.keep_alives.lease_keep_alive_once(id).await
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
