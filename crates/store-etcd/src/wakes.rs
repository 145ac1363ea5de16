//! What those who wait inside of this store object watch: each key once, however many wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use etcd_kv::{EventKind, KvError, WatchStream};
use futures_util::future::Shared;
use futures_util::{FutureExt, StreamExt};
use lock_spi::BoxFuture;

/// The watches that somebody waits for; with the last of its waiters a watch is gone.
#[derive(Debug, Default)]
pub(crate) struct Wakes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    watched: BTreeMap<Bytes, Watched>,
    next: u64,
}

#[derive(Debug)]
struct Watched {
    /// Tells it from earlier watches of the same key.
    number: u64,
    waiters: usize,
    watch: Watch,
}

/// Resolves when the watch stands, and then again when it ends.
type Watch = Shared<BoxFuture<Result<Ending, Arc<KvError>>>>;
type Ending = Shared<BoxFuture<Ended>>;

/// How a watch ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ended {
    /// Its key was deleted in this revision.
    Deleted(i64),
    /// It cannot tell any more.
    Broken,
}

/// Somebody who waits for a key, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    wakes: &'a Wakes,
    key: Bytes,
    number: u64,
    watch: Watch,
}

impl Wakes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who watch the key, or begins a watch. Nothing happens before the waiter asks.
    pub(crate) fn wait<F>(&self, key: Bytes, begin: impl FnOnce(Bytes) -> F) -> Waiter<'_>
    where
        F: Future<Output = Result<WatchStream, KvError>> + Send + 'static,
    {
        let mut table = self.table();
        let joined = table.watched.get_mut(&key);
        if let Some(watched) = joined.filter(|watched| !watched.is_over()) {
            watched.waiters += 1;
            return Waiter {
                wakes: self,
                key,
                number: watched.number,
                watch: watched.watch.clone(),
            };
        }
        let begun = begin(key.clone());
        let begun: BoxFuture<_> = Box::pin(async {
            let events = begun.await.map_err(Arc::new)?;
            let ending: BoxFuture<_> = Box::pin(ending(events));
            Ok(ending.shared())
        });
        let watch = begun.shared();
        let number = table.next;
        table.next += 1;
        let watched = Watched {
            number,
            waiters: 1,
            watch: watch.clone(),
        };
        table.watched.insert(key.clone(), watched);
        Waiter {
            wakes: self,
            key,
            number,
            watch,
        }
    }
}

impl Watched {
    fn is_over(&self) -> bool {
        match self.watch.peek() {
            None => false,
            Some(Ok(ending)) => ending.peek().is_some(),
            Some(Err(_)) => true,
        }
    }
}

/// Until the key is deleted, or the watch breaks.
async fn ending(mut events: WatchStream) -> Ended {
    while let Some(Ok(response)) = events.next().await {
        let changes = response.events.into_iter();
        let deleted = changes.filter(|event| event.kind == EventKind::Delete);
        if let Some(revision) = deleted.map(|event| event.kv.mod_revision).max() {
            return Ended::Deleted(revision);
        }
    }
    Ended::Broken
}

impl Waiter<'_> {
    /// Resolves when the watch stands: what happens from then on ends it.
    pub(crate) async fn stands(&self) -> Result<(), Arc<KvError>> {
        self.watch.clone().await.map(drop)
    }

    /// Resolves when the watch has ended.
    pub(crate) async fn ended(&self) -> Ended {
        match self.watch.clone().await {
            Ok(ending) => ending.await,
            Err(_) => Ended::Broken,
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut table = self.wakes.table();
        let Some(watched) = table.watched.get_mut(&self.key) else {
            return;
        };
        // Another watch of the key may have taken the place of this one.
        if watched.number != self.number {
            return;
        }
        watched.waiters -= 1;
        if watched.waiters == 0 {
            table.watched.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use etcd_kv::{
        Applied, KeyRange, KvErrorKind, LeaseId, MetadataStore, PutRequest, WatchRequest,
    };
    use etcd_mock::MockStore;
    use futures_util::FutureExt;

    use super::*;

    const KEY: Bytes = Bytes::from_static(b"k");

    fn wait<'a>(wakes: &'a Wakes, server: &MockStore) -> Waiter<'a> {
        let server = server.clone();
        wakes.wait(KEY, |key| async move {
            server.watch(WatchRequest::new(KeyRange::Key(key))).await
        })
    }

    #[test]
    fn many_waiters_share_one_watch_that_goes_with_the_last() {
        let (wakes, server) = (Wakes::default(), MockStore::new());
        let waiters: Vec<_> = (0..100).map(|_| wait(&wakes, &server)).collect();
        assert_eq!(server.open_streams(), 0, "nobody asked");
        for waiter in &waiters {
            waiter.stands().now_or_never().unwrap().unwrap();
            assert_eq!(waiter.ended().now_or_never(), None);
        }
        assert_eq!(server.open_streams(), 1);
        let mut waiters = waiters.into_iter();
        let last = waiters.next_back().unwrap();
        drop(waiters);
        assert_eq!((server.open_streams(), wakes.table().watched.len()), (1, 1));
        drop(last);
        assert_eq!((server.open_streams(), wakes.table().watched.len()), (0, 0));
    }

    #[test]
    fn a_deletion_is_told_with_its_revision_and_a_write_is_not() {
        let (wakes, server) = (Wakes::default(), MockStore::new());
        let waiters = [wait(&wakes, &server), wait(&wakes, &server)];
        waiters[1].stands().now_or_never().unwrap().unwrap();
        let lease = LeaseId(7);
        let granted = server.lease_grant(lease, 60);
        granted.now_or_never().unwrap().unwrap();
        let put = server.put(PutRequest::new(KEY, "").with_lease(lease));
        put.now_or_never().unwrap().unwrap();
        assert_eq!(waiters[0].ended().now_or_never(), None);
        let revoked = server.lease_revoke(lease);
        revoked.now_or_never().unwrap().unwrap();
        let revision = server.revision();
        for waiter in &waiters {
            assert_eq!(
                waiter.ended().now_or_never(),
                Some(Ended::Deleted(revision))
            );
        }
        // It is over: whoever comes now watches anew.
        let late = wait(&wakes, &server);
        late.stands().now_or_never().unwrap().unwrap();
        assert_eq!(late.ended().now_or_never(), None);
        drop(waiters);
        assert_eq!((server.open_streams(), wakes.table().watched.len()), (1, 1));
    }

    #[test]
    fn a_watch_that_breaks_or_does_not_begin_is_begun_anew_by_the_next() {
        let (wakes, server) = (Wakes::default(), MockStore::new());
        let one = wait(&wakes, &server);
        one.stands().now_or_never().unwrap().unwrap();
        server.restart();
        assert_eq!(one.ended().now_or_never(), Some(Ended::Broken));
        let failing = wakes.wait(KEY, |_| async {
            Err(KvError::new(KvErrorKind::NoLeader, Applied::No, "planted"))
        });
        let error = failing.stands().now_or_never().unwrap().unwrap_err();
        assert_eq!(error.kind(), KvErrorKind::NoLeader);
        assert_eq!(failing.ended().now_or_never(), Some(Ended::Broken));
        let two = wait(&wakes, &server);
        two.stands().now_or_never().unwrap().unwrap();
        drop((one, failing));
        assert_eq!((server.open_streams(), wakes.table().watched.len()), (1, 1));
    }
}
