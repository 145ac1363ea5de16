//! How many calls of each kind `MockStore` answers in a second, on one core.

#![allow(missing_docs, reason = "criterion's macros make functions without any")]

use std::future::Future;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use etcd_kv::{
    Compare, Consistency, DeleteRequest, KvError, LeaseId, MetadataStore, PutRequest, Txn,
};
use etcd_mock::{MockStore, Options};
use futures_util::FutureExt;

/// As many keys as a large service locks.
const KEYS: u32 = 1_000;
const LEASE: LeaseId = LeaseId(1);
/// About as long as the value of a lock.
const VALUE: Bytes = Bytes::from_static(&[0; 150]);

/// Every call is answered in its first poll: no executor is measured along with it.
fn answer<T>(call: impl Future<Output = Result<T, KvError>>) -> T {
    let answer = call.now_or_never().expect("an answer in the first poll");
    answer.expect("no error")
}

fn keys() -> Vec<Bytes> {
    (0..KEYS)
        .map(|number| Bytes::from(format!("/dlock/default/lock/orders-{number}")))
        .collect()
}

fn get(store: &MockStore, key: &Bytes) {
    black_box(answer(store.get(key.clone(), Consistency::Linearizable)));
}

fn put(store: &MockStore, key: &Bytes) {
    black_box(answer(store.put(PutRequest::new(key.clone(), VALUE))));
}

/// Takes a lock and gives it back: two transactions.
fn lock(store: &MockStore, key: &Bytes) {
    let free = Compare::create_revision(key.clone(), 0);
    let put = PutRequest::new(key.clone(), VALUE).with_lease(LEASE);
    let taken = answer(store.txn(Txn::when([free]).then([put.into()])));
    let own = Compare::mod_revision(key.clone(), taken.header.revision);
    let delete = DeleteRequest::key(key.clone());
    let given_back = answer(store.txn(Txn::when([own]).then([delete.into()])));
    assert!(taken.succeeded && given_back.succeeded);
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("calls");
    let keys = keys();
    for (name, calls, call) in [
        ("get", 1, get as fn(&MockStore, &Bytes)),
        ("put", 1, put),
        ("txn", 2, lock),
    ] {
        // One that forgets the past, as an embedded store does.
        let store = MockStore::with_options(Options::embedded());
        answer(store.lease_grant(LEASE, 60));
        if name == "get" {
            keys.iter().for_each(|key| put(&store, key));
        }
        let mut next = keys.iter().cycle();
        group.throughput(Throughput::Elements(calls));
        group.bench_function(name, |bencher| {
            bencher.iter(|| call(&store, next.next().expect("an endless cycle")));
        });
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);
