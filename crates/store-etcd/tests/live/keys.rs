//! What stands on a server, seen past the store.

use etcd_kv::{MetadataStore, RangeRequest};
use lock_spi::Namespace;

/// A lock without a lease would be held for ever.
pub(crate) async fn assert_locks_end_by_themselves<M: MetadataStore>(
    server: &M,
    namespace: &Namespace,
) {
    let locks = RangeRequest {
        keys_only: true,
        ..RangeRequest::prefix(format!("/dlock/{namespace}/lock/"))
    };
    let locks = server.range(locks).await.expect("an answer");
    let immortal: Vec<_> = locks.kvs.iter().filter(|kv| kv.lease.is_none()).collect();
    assert!(immortal.is_empty(), "no lease ends {immortal:?}");
}
