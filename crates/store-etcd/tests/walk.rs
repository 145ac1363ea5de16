//! Random walks of the protocol: loss, delay, reordering and dropped calls, seed by seed.

// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Cluster, Node, key, seconds};
use etcd_kv::{EventKind, KeyRange, MetadataStore, WatchRequest};
use etcd_mock::MockStore;
use futures_util::StreamExt;
use lock_sim::{Faulty, Weather, World};
use lock_spi::{AttemptId, ErrorKind, Grant, InsertOutcome, LockStore, Queue, Runtime, SessionId};

const SEEDS: u64 = 150;
const ROUNDS: usize = 10;

/// What the walkers were told.
#[derive(Debug, Default)]
struct Told {
    granted: BTreeMap<AttemptId, i64>,
    /// At which revision it was certain that nothing of the attempt stands or ever will.
    over: BTreeMap<AttemptId, i64>,
}

struct Walker {
    node: Node,
    cluster: Cluster,
    told: Arc<Mutex<Told>>,
    session: SessionId,
}

/// A storm without copies: what a proxy repeats after its answer is for reconciliation to end.
fn storm() -> Weather {
    Weather {
        lost_requests: 60,
        lost_replies: 60,
        stragglers: 40,
        duplicates: 0,
        ..Weather::stormy()
    }
}

impl Walker {
    fn chance(&self, one_in: u64) -> bool {
        self.cluster.runtime.random().is_multiple_of(one_in)
    }

    async fn pause(&self, longest: Duration) {
        let runtime = &self.cluster.runtime;
        runtime.sleep(runtime.jitter(longest)).await;
    }

    async fn reopen(&mut self) {
        loop {
            self.session = SessionId::random(&*self.cluster.runtime);
            if self.node.open(self.session).await.is_ok() {
                return;
            }
            self.pause(seconds(1)).await;
        }
    }

    async fn walk(mut self) -> Self {
        self.reopen().await;
        for _ in 0..ROUNDS {
            let text = if self.chance(2) { "a" } else { "b" };
            let attempt = self.node.attempt();
            match self.acquire(text, attempt).await {
                Some(grant) => self.hold(&grant, attempt).await,
                None => self.give_up(text, attempt).await,
            }
        }
        self
    }

    async fn acquire(&mut self, text: &str, attempt: AttemptId) -> Option<Grant> {
        for _ in 0..6 {
            let queue = if self.chance(3) {
                Queue::Never
            } else {
                Queue::Join
            };
            let insert = self.node.insert(self.session, text, attempt, queue);
            if self.chance(8) {
                // Dropped on the way; it runs to its end all the same.
                let limit = self.cluster.runtime.jitter(Duration::from_millis(80));
                drop(self.cluster.runtime.timeout(limit, insert).await);
                continue;
            }
            match insert.await {
                Ok(InsertOutcome::Granted(grant)) => return Some(grant),
                Ok(InsertOutcome::Ended) => return None,
                Ok(InsertOutcome::Held(_) | InsertOutcome::Queued(_)) => {}
                Err(error) if error.kind() == ErrorKind::SessionGone => return None,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            self.pause(seconds(1)).await;
        }
        None
    }

    async fn hold(&mut self, grant: &Grant, attempt: AttemptId) {
        let counter = grant.token.counter().cast_signed();
        self.told.lock().unwrap().granted.insert(attempt, counter);
        let until = self.cluster.runtime.now() + grant.remaining.unwrap();
        let stands = self.cluster.stored(&format!("lock/{}", grant.key));
        assert_eq!(
            stands.map(|kv| kv.mod_revision),
            Some(counter),
            "belief and truth"
        );
        self.pause(seconds(1)).await;
        if self.chance(2)
            && let Ok(kept) = self.node.keep(self.session, &[grant], &[attempt]).await
            && self.cluster.runtime.now() < until
        {
            assert_eq!(kept.unwrap().gone, [], "nobody ended it");
        }
        while self
            .node
            .store
            .delete_if_owner(&grant.key, grant.token)
            .await
            .is_err()
        {
            self.pause(seconds(1)).await;
        }
        self.is_over(attempt);
    }

    async fn give_up(&mut self, text: &str, attempt: AttemptId) {
        let key = key(text);
        while self
            .node
            .store
            .abandon(&key, self.session, attempt)
            .await
            .is_err()
        {
            self.pause(seconds(1)).await;
        }
        self.is_over(attempt);
        let kept = self.node.keep(self.session, &[], &[]).await;
        if matches!(kept, Ok(None)) {
            self.reopen().await;
        }
    }

    /// A renewal in which nothing is accounted for.
    async fn settle(&self) {
        self.node.keep(self.session, &[], &[]).await.unwrap();
    }

    fn is_over(&self, attempt: AttemptId) {
        let revision = self.cluster.server.revision();
        self.told.lock().unwrap().over.insert(attempt, revision);
    }
}

/// Which attempt was granted at which revision, in order, as the server did it.
fn witness(server: &MockStore, runtime: &Arc<dyn Runtime>) -> Arc<Mutex<Vec<(AttemptId, i64)>>> {
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let (server, notes) = (server.clone(), Arc::clone(&seen));
    runtime.spawn(Box::pin(async move {
        let range = KeyRange::prefix("/dlock/default/lock/");
        let mut watch = server.watch(WatchRequest::new(range)).await.unwrap();
        while let Some(Ok(response)) = watch.next().await {
            let puts = response.events.into_iter();
            for event in puts.filter(|event| event.kind == EventKind::Put) {
                let value: serde_json::Value = serde_json::from_slice(&event.kv.value).unwrap();
                let attempt = value["attempt"].as_str().unwrap().parse().unwrap();
                notes.lock().unwrap().push((attempt, event.kv.mod_revision));
            }
        }
    }));
    seen
}

/// Walks, and checks that nothing is left; answers with what was granted and what was told.
fn walk(seed: u64, storm: &Weather) -> (Vec<(AttemptId, i64)>, Told) {
    let world = World::new(seed);
    let runtime = world.runtime("server");
    let server = MockStore::in_step_with(Arc::clone(&runtime));
    let seen = witness(&server, &runtime);
    let told = Arc::new(Mutex::new(Told::default()));
    world.block_on(async {
        let mut walks = Vec::new();
        for name in ["one", "two", "three"] {
            let runtime = world.runtime(name);
            let kv = Faulty::new(server.clone(), Arc::clone(&runtime), Weather::calm());
            let cluster = Cluster {
                server: server.clone(),
                runtime: Arc::clone(&runtime),
            };
            let node = cluster.node_on(kv).await;
            node.kv.faults().set_weather(storm.clone());
            let walker = Walker {
                session: SessionId::random(&*runtime),
                node,
                cluster,
                told: Arc::clone(&told),
            };
            walks.push(runtime.run_to_end(walker.walk()));
        }
        let mut walkers = Vec::new();
        for walk in walks {
            walkers.push(walk.await.unwrap());
        }
        for walker in &walkers {
            walker.node.kv.faults().set_weather(Weather::calm());
            walker.settle().await;
        }
        // What straggles has arrived by then, and the renewal ends what nobody accounts for.
        runtime.sleep(seconds(11)).await;
        for walker in &walkers {
            walker.settle().await;
        }
        for family in ["lock/", "wait/"] {
            let left = walkers[0].cluster.names(family);
            assert!(left.is_empty(), "seed {seed}: {family} {left:?}");
        }
        for walker in &walkers {
            let closed = walker.node.store.close_session(walker.session).await;
            closed.unwrap();
        }
    });
    let seen = seen.lock().unwrap().clone();
    let told = std::mem::take(&mut *told.lock().unwrap());
    (seen, told)
}

#[test]
fn no_attempt_is_granted_twice_or_late_and_nothing_is_left() {
    for seed in 0..SEEDS {
        let (seen, told) = walk(seed, &storm());
        let granted: BTreeMap<_, _> = seen.iter().copied().collect();
        assert_eq!(granted.len(), seen.len(), "seed {seed}: granted twice");
        for (attempt, revision) in &told.granted {
            assert_eq!(granted.get(attempt), Some(revision), "seed {seed}");
        }
        for (attempt, over) in &told.over {
            let late = granted.get(attempt).is_some_and(|revision| revision > over);
            assert!(
                !late,
                "seed {seed}: {attempt} was granted after it was over"
            );
        }
    }
}

/// A copy of a request that was answered may make a ghost; it lives until the next renewal.
#[test]
fn copies_of_requests_leave_nothing_beyond_a_renewal() {
    let copies = Weather {
        duplicates: 30,
        ..storm()
    };
    for seed in 0..SEEDS {
        walk(seed, &copies);
    }
}
