//! Who is woken, and when.

mod support;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use etcd_kv::{KeyRange, MetadataStore, PutRequest, WatchRequest, WatchStream};
use etcd_mock::MockStore;
use futures_util::Stream;
use support::block_on;

async fn watch(store: &MockStore, key: &'static str) -> WatchStream {
    let request = WatchRequest::new(KeyRange::key(key));
    store.watch(request).await.expect("the watch is made")
}

fn is_pending(watch: &mut WatchStream, waker: &Waker) -> bool {
    let mut context = Context::from_waker(waker);
    Pin::new(watch).poll_next(&mut context).is_pending()
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reader_is_woken_once_and_only_for_what_it_watches() {
    block_on(async {
        let store = MockStore::new();
        let mut watch = watch(&store, "a").await;
        let count = Arc::new(Count::default());
        let woken = || count.0.load(Ordering::Relaxed);
        assert!(is_pending(&mut watch, &Arc::clone(&count).into()));
        store.put(PutRequest::new("b", "v")).await.unwrap();
        assert_eq!(woken(), 0);
        store.put(PutRequest::new("a", "v")).await.unwrap();
        store.put(PutRequest::new("a", "v")).await.unwrap();
        assert_eq!(woken(), 1);
    });
}

/// A task that owns a stream, and is owned by nothing but its wakers.
struct Task(#[allow(dead_code, reason = "dropped, not read")] Mutex<WatchStream>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_that_drops_a_stream_of_the_store_does_not_lock_it_up() {
    block_on(async {
        let store = MockStore::new();
        let mut watched = watch(&store, "a").await;
        let owned = watch(&store, "b").await;
        let task = Arc::new(Task(Mutex::new(owned)));
        assert!(is_pending(&mut watched, &task.into()));
        assert_eq!(store.open_streams(), 2);
        assert!(is_pending(&mut watched, Waker::noop()));
        assert_eq!(store.open_streams(), 1);
    });
}
