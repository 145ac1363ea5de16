//! Guards dropped anywhere (K24).

// Threads and tokio runtimes are what these tests are about.
#![allow(clippy::disallowed_methods)]

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use fencelock::spi::{Runtime, TokioRuntime, Ttl};
use fencelock::{Client, Guard};

use crate::common::{Double, Op, acquired, is_free};

fn runtimes() -> [tokio::runtime::Runtime; 2] {
    [
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap(),
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .unwrap(),
    ]
}

/// A client on tokio and its store.
fn client() -> (Client, Double) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let store = Double::new(Arc::clone(&runtime));
    let client = Client::builder(store.clone())
        .ttl(Ttl::MIN)
        .build()
        .unwrap();
    (client, store)
}

/// Polls until `done`, for a few seconds at most.
async fn eventually(done: impl Fn() -> bool) {
    for _ in 0..500 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not happen");
}

/// B169: dropped inside tokio, of either flavour, the guard is given back soon; released, at once.
#[test]
fn guard_dropped_inside_tokio_is_given_back() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (client, store) = client();
            drop(acquired(&client, "dropped").await);
            eventually(|| store.holder("dropped").is_none()).await;
            acquired(&client, "released").await.release().await.unwrap();
            assert!(store.holder("released").is_none());
            client.shutdown().await;
        });
    }
}

/// B170: dropped on a plain thread, or in a thread-local's destructor, it is given back.
#[test]
fn guard_dropped_on_a_plain_thread_is_given_back() {
    thread_local! {
        static LAST: RefCell<Option<Guard>> = const { RefCell::new(None) };
    }
    for runtime in runtimes() {
        runtime.block_on(async {
            let (client, store) = client();
            let (one, two) = (
                acquired(&client, "one").await,
                acquired(&client, "two").await,
            );
            let thread = std::thread::spawn(move || {
                drop(one);
                LAST.set(Some(two));
            });
            eventually(|| thread.is_finished()).await;
            thread.join().unwrap();
            eventually(|| store.holder("one").is_none()).await;
            eventually(|| store.holder("two").is_none()).await;
            client.shutdown().await;
        });
    }
}

/// B170: dropped after its runtime has ended, nothing panics, nothing is renewed, and the ttl frees
/// the key.
#[test]
fn guard_dropped_after_its_runtime_is_left_to_the_ttl() {
    for runtime in runtimes() {
        let (client, store, guard, held) = runtime.block_on(async {
            let (client, store) = client();
            let guard = acquired(&client, "k").await;
            let held = guard.held();
            (client, store, guard, held)
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        let renewed = store.count(Op::KeepAlive);
        drop(guard);
        drop(client);
        assert!(!held.is_held());
        assert_eq!(store.count(Op::KeepAlive), renewed);

        let next = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        next.block_on(async {
            eventually(|| store.holder("k").is_none()).await;
            let store = store.moved_to(Arc::new(TokioRuntime::current()));
            let other = Client::builder(store).ttl(Ttl::MIN).build().unwrap();
            assert!(is_free(&other, "k").await);
        });
    }
}

/// B170: dropped by an unwind on a plain thread, it is given back and nothing aborts.
#[test]
fn guard_dropped_by_an_unwind_is_given_back() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (client, store) = client();
            let guard = acquired(&client, "k").await;
            let thread = std::thread::spawn(move || {
                let _guard = guard;
                panic!("planted");
            });
            eventually(|| thread.is_finished()).await;
            assert!(thread.join().is_err());
            eventually(|| store.holder("k").is_none()).await;
        });
    }
}
