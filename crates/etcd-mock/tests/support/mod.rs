//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use etcd_kv::{Consistency, KeyValue, KvError, KvErrorKind, LeaseId, MetadataStore, PutRequest};
use etcd_mock::MockStore;
use futures_util::{Stream, StreamExt};
use sim_runtime::World;

/// Runs a test that waits for nothing.
pub(crate) fn block_on<F: Future>(test: F) -> F::Output {
    World::new(0).block_on(test)
}

/// Everything that a stream yields without anything happening in between; `true` if it has ended.
pub(crate) fn drain<S: Stream + Unpin>(stream: &mut S) -> (Vec<S::Item>, bool) {
    let mut items = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match stream.poll_next_unpin(&mut context) {
            Poll::Ready(Some(item)) => items.push(item),
            Poll::Ready(None) => return (items, true),
            Poll::Pending => return (items, false),
        }
    }
}

/// The key as it is now.
pub(crate) async fn read(store: &MockStore, key: &'static str) -> Option<KeyValue> {
    let found = store.get(key.into(), Consistency::Linearizable).await;
    found.expect("the key can be read").kv
}

/// The value as it is now.
pub(crate) async fn value(store: &MockStore, key: &'static str) -> Option<Bytes> {
    read(store, key).await.map(|kv| kv.value)
}

/// How a call was refused.
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, KvError>) -> KvErrorKind {
    answer.expect_err("the call is to be refused").kind()
}

/// Grants a lease of this ttl and puts a key on it.
pub(crate) async fn put_leased(store: &MockStore, key: &'static str, lease: LeaseId, ttl: i64) {
    let granted = store.lease_grant(lease, ttl).await;
    granted.expect("the lease is granted");
    let put = store.put(PutRequest::new(key, "v").with_lease(lease)).await;
    put.expect("the key is written");
}
