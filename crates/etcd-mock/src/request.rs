use etcd_kv::{
    DeleteRequest, DeleteResponse, KeepAliveResponse, LeaseGrant, LeaseId, PutRequest, PutResponse,
    RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest,
};

/// What a client can ask for. The answer is the [`Response`] of the same name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// Forgets what was before this revision.
    Compact(i64),
    /// Deletes keys.
    Delete(DeleteRequest),
    /// Grants a lease.
    LeaseGrant(LeaseGrantRequest),
    /// Renews a lease at once and then again and again.
    LeaseKeepAlive(LeaseKeepAliveRequest),
    /// Renews a lease once.
    LeaseKeepAliveOnce(LeaseId),
    /// Ends a lease.
    LeaseRevoke(LeaseId),
    /// Tells what is left of a lease.
    LeaseTimeToLive(LeaseId),
    /// Writes a key.
    Put(PutRequest),
    /// Reads keys.
    Range(RangeRequest),
    /// Does the one or the other.
    Txn(Txn),
    /// Watches keys.
    Watch(WatchRequest),
}

/// Grants a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseGrantRequest {
    /// Its id, not 0.
    pub id: LeaseId,
    /// Its ttl in seconds; raised to the least that the server grants.
    pub ttl: i64,
}

/// Renews a lease at once and then again and again, until the stream is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseKeepAliveRequest {
    /// The lease.
    pub id: LeaseId,
    /// Ticks from one renewal to the next; 0 counts as 1.
    pub period: u64,
}

/// What a client is answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Response {
    /// The past is forgotten.
    Compact(()),
    /// What was deleted.
    Delete(DeleteResponse),
    /// The lease.
    LeaseGrant(LeaseGrant),
    /// Where the answers to the renewals can be read.
    LeaseKeepAlive(StreamId),
    /// What the renewal came to.
    LeaseKeepAliveOnce(KeepAliveResponse),
    /// The lease has ended.
    LeaseRevoke(()),
    /// What is left of the lease.
    LeaseTimeToLive(TimeToLive),
    /// What was overwritten.
    Put(PutResponse),
    /// The keys.
    Range(RangeResponse),
    /// What was done.
    Txn(TxnResponse),
    /// Where the changes can be read.
    Watch(StreamId),
}

/// Names an open watch or keepalive.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(pub(crate) u64);
