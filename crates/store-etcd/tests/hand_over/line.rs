//! People in line for one key, who wait and ask as clients do.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_kv::MetadataStore;
use lock_spi::{
    AttemptId, Grant, InsertOutcome, InsertRequest, Joined, LockStore, Payload, Place, Queue,
    Runtime, SessionId, WaitRequest,
};
use store_etcd::EtcdLockStore;

use crate::common::{Node, key, queued};

/// Clients look again at the latest after so long.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The key they wait for.
pub(crate) const KEY: &str = "k";

/// One of them.
#[derive(Clone)]
pub(crate) struct Person<M> {
    pub(crate) store: EtcdLockStore<M>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) session: SessionId,
    pub(crate) attempt: AttemptId,
    pub(crate) place: Place,
}

/// Who was granted the lock, in this order.
pub(crate) type Order = Arc<Mutex<Vec<(AttemptId, u64)>>>;

impl<M: MetadataStore> Person<M> {
    pub(crate) async fn joins(node: &Node<M>, session: SessionId) -> Self {
        let attempt = node.attempt();
        let outcome = node.insert(session, KEY, attempt, Queue::Join).await;
        Self {
            store: node.store.clone(),
            runtime: Arc::clone(&node.runtime),
            session,
            attempt,
            place: queued(outcome.unwrap()),
        }
    }

    pub(crate) fn wait(&self) -> impl Future<Output = lock_spi::Result<()>> + Send + use<M> {
        let store = self.store.clone();
        let request = WaitRequest {
            key: key(KEY),
            session: self.session,
            attempt: self.attempt,
            place: Some(self.place.clone()),
        };
        async move { store.await_release(request).await }
    }

    pub(crate) async fn ask(&self) -> lock_spi::Result<InsertOutcome> {
        let request = InsertRequest {
            key: key(KEY),
            session: self.session,
            attempt: self.attempt,
            payload: Payload::default(),
            queue: Queue::Join,
        };
        self.store.try_insert(request).await
    }

    async fn acquire(&self, look_again: Duration) -> Grant {
        loop {
            let hint = self.runtime.timeout(look_again, self.wait()).await;
            if let Ok(Err(error)) = hint {
                assert!(error.is_retryable(), "{error:?}");
                self.runtime.sleep(Duration::from_millis(200)).await;
            }
            match self.ask().await {
                Ok(InsertOutcome::Granted(grant)) => return grant,
                Ok(InsertOutcome::Queued(_)) => {}
                Ok(other) => panic!("not in line: {other:?}"),
                Err(error) => assert!(error.is_retryable(), "{error:?}"),
            }
        }
    }

    async fn takes_its_turn(self, (look_again, hold): (Duration, Duration), order: Order) {
        let grant = self.acquire(look_again).await;
        let token = grant.token.counter();
        order.lock().unwrap().push((self.attempt, token));
        self.runtime.sleep(hold).await;
        while let Err(error) = self.store.delete_if_owner(&grant.key, grant.token).await {
            assert!(error.is_retryable(), "{error:?}");
            self.runtime.sleep(Duration::from_millis(200)).await;
        }
    }
}

/// All of them, each on a task of its own.
pub(crate) struct Line {
    pub(crate) order: Order,
    expected: Vec<AttemptId>,
    turns: Vec<Joined<()>>,
}

impl Line {
    /// They begin to wait; each looks again after at most so long without a hint, and is to hold
    /// the lock for so long.
    pub(crate) fn of<M: MetadataStore + Clone>(
        people: &[Person<M>],
        times: (Duration, Duration),
    ) -> Self {
        let order = Order::default();
        let turns = people.iter().map(|person| {
            let turn = person.clone().takes_its_turn(times, Arc::clone(&order));
            person.runtime.run_to_end(turn)
        });
        Self {
            turns: turns.collect(),
            expected: people.iter().map(|person| person.attempt).collect(),
            order,
        }
    }

    /// Until everybody had a turn: exactly in the order of the places, with tokens that rise.
    pub(crate) async fn served_in_order(self) {
        for turn in self.turns {
            turn.await.unwrap();
        }
        let order = self.order.lock().unwrap();
        let served: Vec<_> = order.iter().map(|(attempt, _)| *attempt).collect();
        assert_eq!(served, self.expected);
        assert!(order.is_sorted_by(|(_, one), (_, two)| one < two));
    }
}
