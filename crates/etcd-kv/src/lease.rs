use bytes::Bytes;

use crate::key::Header;
use crate::stream::KvStream;

/// Names a lease; not 0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LeaseId(pub i64);

/// A lease that was granted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseGrant {
    /// Of the answer.
    pub header: Header,
    /// Its id.
    pub id: LeaseId,
    /// Its ttl in seconds: the one asked for, or the server's minimum.
    pub ttl: i64,
}

/// The answer to a keepalive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeepAliveResponse {
    /// Of the answer.
    pub header: Header,
    /// The lease.
    pub id: LeaseId,
    /// Its ttl in seconds from now on; 0 when the server does not know it or it has expired. Neither
    /// answer alone proves that the lease lives or is gone.
    pub ttl: i64,
}

/// What is left of a lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TimeToLive {
    /// Of the answer.
    pub header: Header,
    /// The lease.
    pub id: LeaseId,
    /// Seconds left; -1 for an unknown lease.
    pub ttl: i64,
    /// The ttl that it was granted with; 0 for an unknown lease.
    pub granted_ttl: i64,
    /// The keys bound to it, if asked for, in byte order.
    pub keys: Vec<Bytes>,
}

/// Renews a lease once a period and yields the answers; dropped, it stops.
pub type KeepAliveStream = KvStream<KeepAliveResponse>;
