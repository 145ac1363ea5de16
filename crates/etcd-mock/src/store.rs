use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, Header, KeepAliveResponse,
    KeepAliveStream, KeyValue, KvError, LeaseGrant, LeaseId, MetadataStore, PutRequest,
    PutResponse, RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest,
    WatchStream,
};
use futures_core::Stream;
use lock_spi::Runtime;

use crate::clock::Clock;
use crate::engine::{Engine, Event, Snapshot};
use crate::error;
use crate::facts::Fact;
use crate::options::Options;
use crate::request::{LeaseGrantRequest, LeaseKeepAliveRequest, Request, Response};
use crate::shared::Shared;
use crate::stream::Reader;
use crate::time::{full_ticks, period_in_ticks};

/// For a stream of which only the first answer is read.
const HELD_UP_PERIOD: Duration = Duration::from_secs(1);

/// An etcd in memory: deterministic, and without faults.
///
/// Clones share one store, which lives until the last is dropped; streams then end with
/// `Unavailable`. Every call is applied and answered in its first poll, but for a keepalive of a lease
/// that is [late to end](crate::Expiry::Scanned). Time either stands still until it is moved
/// ([`new`](Self::new)) or follows a runtime ([`in_step_with`](Self::in_step_with)).
///
/// All reads are linearizable, whatever consistency they ask for.
#[derive(Clone, Debug)]
pub struct MockStore {
    shared: Arc<Shared>,
}

/// Takes the response of this name out of an answer.
macro_rules! response {
    ($name:ident, $answer:expr) => {
        match $answer? {
            Response::$name(response) => Ok(response),
            _ => Err(error::mismatched()),
        }
    };
}

/// Calls with a request and takes the response of the same name.
macro_rules! call {
    ($store:expr, $name:ident($request:expr)) => {{
        let answer = $store.shared.call(Request::$name($request));
        response!($name, answer.unwrap_or_else(|| Err(error::lost())))
    }};
}

impl MockStore {
    /// An empty store whose time moves by [`tick`](Self::tick) and [`advance`](Self::advance).
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(Options::default())
    }

    /// The same, set up otherwise.
    #[must_use]
    pub fn with_options(options: Options) -> Self {
        Self::serving(Engine::new(options), None)
    }

    /// An empty store whose ticks follow the clock of `runtime`, for use in earnest: the last
    /// 10,000 revisions are kept.
    ///
    /// Whatever is due happens before each call. A task on the runtime sees to it that it also
    /// happens when nobody calls, so that watchers learn of expiry; it ends with the store.
    #[must_use]
    pub fn in_step_with(runtime: Arc<dyn Runtime>) -> Self {
        Self::in_step_with_options(runtime, Options::embedded())
    }

    /// The same, set up otherwise.
    #[must_use]
    pub fn in_step_with_options(runtime: Arc<dyn Runtime>, options: Options) -> Self {
        Self::serving(Engine::new(options), Some(Clock::new(runtime)))
    }

    fn serving(engine: Engine, clock: Option<Clock>) -> Self {
        let shared = Arc::new(Shared::new(engine, clock));
        if let Some(clock) = shared.clock() {
            clock.drive(Arc::downgrade(&shared));
        }
        Self { shared }
    }

    /// Lets one tick pass.
    ///
    /// A store in step with a runtime is then ahead of it, and waits for the runtime to catch up.
    pub fn tick(&self) {
        self.advance(1);
    }

    /// Lets ticks pass, with everything that falls due in them.
    ///
    /// A store in step with a runtime is then ahead of it, and waits for the runtime to catch up.
    pub fn advance(&self, ticks: u64) {
        self.shared.step(Event::Advance { ticks });
    }

    /// The store's revision.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.shared.look(Engine::revision)
    }

    /// What an answer given now would carry.
    #[must_use]
    pub fn header(&self) -> Header {
        self.shared.look(Engine::header)
    }

    /// Every key as it is now, in byte order.
    #[must_use]
    pub fn entries(&self) -> Vec<KeyValue> {
        self.shared.look(Engine::entries)
    }

    /// How many watches and keepalives are open.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.shared.look(Engine::open_streams)
    }

    /// The raft term of later headers: a higher one is another leader.
    pub fn set_raft_term(&self, raft_term: u64) {
        self.shared.alter(|engine| {
            engine.set_raft_term(raft_term);
            Vec::new()
        });
    }

    /// What a backup made now would hold.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.look(Engine::snapshot)
    }

    /// Starts again from a backup, of this store or another: revisions go back to where they were,
    /// leases last their full ttl again, open streams break off with `Unavailable`.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.shared.alter(|engine| engine.restore(snapshot));
    }

    /// Starts again with the same data, as a cluster does that was killed as a whole: the raft term
    /// rises, leases last their full ttl again, open streams break off with `Unavailable`.
    pub fn restart(&self) {
        self.shared.alter(Engine::restart);
    }

    /// The leader is gone and no other is chosen: no lease ends until [`elect`](Self::elect).
    pub fn step_down(&self) {
        self.shared.alter(|engine| {
            engine.step_down();
            Vec::new()
        });
    }

    /// Another server leads: the raft term rises, and leases last their full ttl again and so much
    /// more. Streams stand.
    pub fn elect(&self, more: Duration) {
        self.shared.alter(|engine| {
            engine.elect(full_ticks(more));
            Vec::new()
        });
    }

    /// The leases that stand: each with its ttl in seconds, and the tick at which it ends.
    #[must_use]
    pub fn leases(&self) -> Vec<(LeaseId, i64, u64)> {
        self.shared.look(Engine::leases)
    }

    /// Tells `observer` of everything that becomes true from now on, after it did and before its
    /// cause is answered. A store has one observer; later ones are told nothing.
    ///
    /// What a restore changes is not told: who restores can look.
    pub fn observe(&self, observer: impl Fn(Fact) + Send + Sync + 'static) {
        self.shared.observe(Box::new(observer));
    }

    /// A store of its own with the same data at the same moment, on the same clock; nothing that
    /// happens to the one happens to the other.
    #[must_use]
    pub fn fork(&self) -> Self {
        let engine = self.shared.look(Engine::fork);
        Self::serving(engine, self.shared.clock().map(Clock::for_another))
    }
}

impl Default for MockStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl MetadataStore for MockStore {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        let request = RangeRequest {
            consistency,
            ..RangeRequest::key(key)
        };
        let RangeResponse {
            header, mut kvs, ..
        } = self.range(request).await?;
        let kv = kvs.pop();
        Ok(GetResponse { header, kv })
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        call!(self, Range(request))
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        call!(self, Put(request))
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        call!(self, Delete(request))
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        call!(self, Txn(txn))
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        call!(self, LeaseGrant(LeaseGrantRequest { id, ttl }))
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        if let Some(answer) = self.shared.call(Request::LeaseKeepAliveOnce(id)) {
            return response!(LeaseKeepAliveOnce, answer);
        }
        // Held up until the lease has ended: the first answer of a stream comes then.
        let mut stream = self.lease_keep_alive(id, HELD_UP_PERIOD).await?;
        let first = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await;
        first.unwrap_or_else(|| Err(error::stream_broken()))
    }

    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        let period = period_in_ticks(period);
        let stream = call!(self, LeaseKeepAlive(LeaseKeepAliveRequest { id, period }))?;
        let store = Arc::downgrade(&self.shared);
        let reader = Reader::new(store, stream, Engine::poll_keep_alive);
        Ok(KeepAliveStream::new(reader))
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        call!(self, LeaseTimeToLive(id))
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        call!(self, LeaseRevoke(id))
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        let stream = call!(self, Watch(request))?;
        let store = Arc::downgrade(&self.shared);
        let reader = Reader::new(store, stream, Engine::poll_watch);
        Ok(WatchStream::new(reader))
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        call!(self, Compact(revision))
    }
}
