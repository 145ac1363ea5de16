use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, KeepAliveResponse, KeepAliveStream,
    KvError, KvErrorKind, LeaseGrant, LeaseId, MetadataStore, PutRequest, PutResponse,
    RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest, WatchStream,
};
use sim_runtime::Faulty;

use super::Member;

/// A client's ways to the members: it stays with one for as long as it answers.
pub(crate) struct Endpoints {
    links: Vec<Faulty<Member>>,
    preferred: AtomicUsize,
}

/// A call under way. One that was given up turns to another member, as one that failed does.
struct Turn<'a> {
    endpoints: &'a Endpoints,
    asked: usize,
    answered: bool,
}

impl Endpoints {
    pub(crate) const fn new(links: Vec<Faulty<Member>>, first: usize) -> Self {
        Self {
            links,
            preferred: AtomicUsize::new(first),
        }
    }

    fn turn(&self) -> Turn<'_> {
        Turn {
            endpoints: self,
            asked: self.preferred.load(Ordering::Relaxed) % self.links.len().max(1),
            answered: false,
        }
    }
}

impl<'a> Turn<'a> {
    fn link(&self) -> &'a Faulty<Member> {
        // Invariant: `asked` is a number below the number of links, of which there are some.
        self.endpoints.links.get(self.asked).expect("a link")
    }

    fn settle<T>(mut self, answer: Result<T, KvError>) -> Result<T, KvError> {
        self.answered = !answer.as_ref().is_err_and(|error| {
            let kind = error.kind();
            matches!(kind, KvErrorKind::NoLeader | KvErrorKind::Unavailable)
        });
        answer
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.answered {
            let next = self.asked + 1;
            self.endpoints.preferred.store(next, Ordering::Relaxed);
        }
    }
}

macro_rules! ask {
    ($endpoints:expr, $method:ident($($argument:expr),*)) => {{
        let turn = $endpoints.turn();
        let answer = turn.link().$method($($argument),*).await;
        turn.settle(answer)
    }};
}

#[async_trait]
impl MetadataStore for Endpoints {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        ask!(self, get(key, consistency))
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        ask!(self, range(request))
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        ask!(self, put(request))
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        ask!(self, delete(request))
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        ask!(self, txn(txn))
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        ask!(self, lease_grant(id, ttl))
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        ask!(self, lease_keep_alive_once(id))
    }

    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        ask!(self, lease_keep_alive(id, period))
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        ask!(self, lease_time_to_live(id))
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        ask!(self, lease_revoke(id))
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        ask!(self, watch(request))
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        ask!(self, compact(revision))
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoints")
            .field("preferred", &self.preferred)
            .finish_non_exhaustive()
    }
}
