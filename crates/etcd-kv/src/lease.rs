use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;

use crate::error::KvError;
use crate::key::Header;

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
pub struct KeepAliveStream(Pin<Box<dyn Stream<Item = Result<KeepAliveResponse, KvError>> + Send>>);

impl KeepAliveStream {
    /// Wraps a stream.
    pub fn new(
        stream: impl Stream<Item = Result<KeepAliveResponse, KvError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(stream))
    }
}

impl Stream for KeepAliveStream {
    type Item = Result<KeepAliveResponse, KvError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for KeepAliveStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepAliveStream").finish_non_exhaustive()
    }
}
