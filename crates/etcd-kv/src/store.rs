use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::KvError;
use crate::key::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, Lease, PutRequest, PutResponse,
    RangeRequest, RangeResponse,
};
use crate::lease::{KeepAliveResponse, KeepAliveStream, LeaseGrant, LeaseId, TimeToLive};
use crate::txn::{Compare, Txn, TxnResponse};
use crate::watch::{WatchRequest, WatchStream};

/// A store with etcd's behaviour.
///
/// A call that was sent may be applied although its future is dropped. Errors say in
/// [`KvError::applied`] whether a failed call may have been applied.
#[async_trait]
pub trait MetadataStore: Debug + Send + Sync + 'static {
    /// Reads one key as it is now.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an empty key.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError>;

    /// Reads a range: sorted, paged, at a revision.
    ///
    /// # Errors
    ///
    /// `Compacted` or `FutureRevision` when the revision cannot be read; `InvalidArgument` for an
    /// empty key.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError>;

    /// Writes a key.
    ///
    /// # Errors
    ///
    /// `LeaseNotFound` for an unknown lease; `InvalidArgument` for an empty key.
    ///
    /// # Cancel safety
    ///
    /// The write may happen although the future was dropped.
    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError>;

    /// Deletes keys, without a condition.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an empty key.
    ///
    /// # Cancel safety
    ///
    /// The deletion may happen although the future was dropped.
    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError>;

    /// Does the one or the other, in one atomic step.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for more than 128 comparisons or operations in a branch, or a key written
    /// twice in one branch; `LeaseNotFound` for an unknown lease in the branch taken, and then none
    /// of it is applied.
    ///
    /// # Cancel safety
    ///
    /// The transaction may happen although the future was dropped.
    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError>;

    /// Grants a lease with a chosen id, for `ttl` seconds or the server's minimum.
    ///
    /// # Errors
    ///
    /// `LeaseExists` for a taken id; `InvalidArgument` for a ttl above 9,000,000,000 s.
    ///
    /// # Cancel safety
    ///
    /// The lease may be granted although the future was dropped.
    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError>;

    /// Renews a lease once.
    ///
    /// # Errors
    ///
    /// Only those of the way to the server; an unknown lease is an answer with a ttl of 0.
    ///
    /// # Cancel safety
    ///
    /// The renewal may happen although the future was dropped.
    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError>;

    /// Renews a lease at once and then every `period`, until the stream is dropped.
    ///
    /// # Errors
    ///
    /// Those of the way to the server; later ones come through the stream, which then ends.
    ///
    /// # Cancel safety
    ///
    /// A renewal may happen although the future was dropped.
    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError>;

    /// Tells what is left of a lease, and which keys it holds.
    ///
    /// # Errors
    ///
    /// Only those of the way to the server; an unknown lease is an answer with a ttl of -1.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError>;

    /// Ends a lease and deletes its keys.
    ///
    /// # Errors
    ///
    /// `LeaseNotFound` for an unknown lease.
    ///
    /// # Cancel safety
    ///
    /// The revoke may happen although the future was dropped.
    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError>;

    /// Watches keys, from now or from a revision on; answers once the watch stands.
    ///
    /// # Errors
    ///
    /// Those of the way to the server; later ones come through the stream.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a watch that nobody reads is removed.
    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError>;

    /// Forgets what was before `revision`; what stands at it can still be read.
    ///
    /// # Errors
    ///
    /// `Compacted` when that was done before; `FutureRevision` beyond the present.
    ///
    /// # Cancel safety
    ///
    /// The compaction may happen although the future was dropped.
    async fn compact(&self, revision: i64) -> Result<(), KvError>;

    /// Reads every key that starts with `prefix`, sorted by key, at most `limit`, as of `revision`.
    ///
    /// # Errors
    ///
    /// Those of [`MetadataStore::range`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    async fn get_prefix(
        &self,
        prefix: Bytes,
        limit: Option<u32>,
        revision: Option<i64>,
    ) -> Result<RangeResponse, KvError> {
        self.range(RangeRequest {
            limit,
            revision,
            ..RangeRequest::prefix(prefix)
        })
        .await
    }

    /// Writes a key if it does not exist; `true` when it was written.
    ///
    /// # Errors
    ///
    /// Those of [`MetadataStore::txn`].
    ///
    /// # Cancel safety
    ///
    /// The write may happen although the future was dropped.
    async fn cas_put(&self, key: Bytes, value: Bytes, lease: Lease) -> Result<bool, KvError> {
        let absent = Compare::create_revision(key.clone(), 0);
        let put = PutRequest {
            key,
            value,
            lease,
            prev_kv: false,
        };
        Ok(self
            .txn(Txn::when([absent]).then([put.into()]))
            .await?
            .succeeded)
    }
}

// What is shared is as good as what is owned. The methods with a body are built of the others.
#[async_trait]
impl<M: MetadataStore + ?Sized> MetadataStore for Arc<M> {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        M::get(self, key, consistency).await
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        M::range(self, request).await
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        M::put(self, request).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        M::delete(self, request).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        M::txn(self, txn).await
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        M::lease_grant(self, id, ttl).await
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        M::lease_keep_alive_once(self, id).await
    }

    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        M::lease_keep_alive(self, id, period).await
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        M::lease_time_to_live(self, id).await
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        M::lease_revoke(self, id).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        M::watch(self, request).await
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        M::compact(self, revision).await
    }
}
