//! One process: a client with a store object of its own, and callers that use it.

use std::sync::Arc;
use std::time::Duration;

use etcd_mock::MockStore;
use fencelock::{Attempt, Client, ErrorKind, Guard, Lost, Release};
use lock_fence::FencingToken;
use lock_spi::{Instant, Namespace, Owner, Runtime, Ttl};
use sim_runtime::Faulty;
use store_etcd::{EtcdConfig, EtcdLockStore};

use crate::ledger::Ledger;
use crate::scene::{KEYS, TTL};

const LONGEST_PAUSE: Duration = Duration::from_millis(1500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
const LONGEST_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) client: Client,
    ledger: Arc<Ledger>,
}

impl Node {
    /// Starts a node; the network may refuse the store's first words.
    pub(crate) async fn start(
        name: &str,
        runtime: Arc<dyn Runtime>,
        network: Faulty<MockStore>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let config = EtcdConfig::new(Namespace::new("smoke").unwrap());
        let store = loop {
            let (own, network) = (Arc::clone(&runtime), network.clone());
            match EtcdLockStore::open(network, own, config.clone()).await {
                Ok(store) => break store,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        };
        let client = Client::builder(store)
            .owner(Owner::new(name).unwrap())
            .ttl(Ttl::new(TTL).unwrap())
            .runtime(Arc::clone(&runtime))
            .build()
            .unwrap();
        Self {
            runtime,
            client,
            ledger,
        }
    }

    /// Takes locks and writes under them until `until`.
    pub(crate) async fn work(self, until: Instant) {
        while self.runtime.now() < until {
            self.pause(LONGEST_PAUSE).await;
            let key = KEYS[self.one_of(KEYS.len())];
            let floor = self.ledger.highest_known(key);
            if let Some(guard) = self.acquire(key).await {
                self.ledger.granted(key, &guard, floor);
                self.hold(key, guard).await;
            }
        }
    }

    async fn acquire(&self, key: &'static str) -> Option<Guard> {
        let result = match self.one_of(3) {
            0 => match self.client.try_acquire(key).await {
                Ok(Attempt::Acquired(guard)) => Ok(guard),
                Ok(Attempt::Held(_)) => {
                    self.ledger.count(|tally| tally.held += 1);
                    return None;
                }
                Err(error) => Err(error),
            },
            1 => {
                let patience = self.runtime.jitter(LONGEST_WAIT);
                self.client.acquire(key).wait_at_most(patience).await
            }
            _ => {
                let patience = self.runtime.jitter(LONGEST_PATIENCE);
                let acquire = self.client.acquire(key).into_future();
                match self.runtime.timeout(patience, acquire).await {
                    Ok(result) => result,
                    Err(_) => {
                        self.ledger.count(|tally| tally.cancelled += 1);
                        return None;
                    }
                }
            }
        };
        match result {
            Ok(guard) => Some(guard),
            Err(error) => {
                match error.kind() {
                    ErrorKind::TimedOut => self.ledger.count(|tally| tally.held += 1),
                    ErrorKind::NotLeader | ErrorKind::Unavailable => {
                        self.ledger.count(|tally| tally.failed += 1);
                    }
                    _ => self.ledger.breach(format!("acquire {key}: {error:?}")),
                }
                None
            }
        }
    }

    async fn hold(&self, key: &'static str, guard: Guard) {
        let token = guard.token();
        for _ in 0..1 + self.one_of(4) {
            match guard.check() {
                Ok(checked) => {
                    self.ledger.believed(key, checked);
                    // Nothing comes between this check and this write.
                    self.ledger.write_checked(key, checked);
                }
                Err(lost) => return self.ledger.lost(key, &lost),
            }
            // Here is where a process is paused, and its lock passes on.
            self.pause(self.a_while()).await;
            self.ledger.write_late(key, token);
        }
        match self.one_of(5) {
            0 => drop(guard),
            1 => {
                let patience = self.runtime.jitter(LONGEST_PATIENCE);
                let release = guard.release();
                if let Ok(result) = self.runtime.timeout(patience, release).await {
                    self.released(key, token, result);
                }
            }
            2 => {
                let patience = self.runtime.jitter(LONGEST_WAIT);
                let loss = self.runtime.timeout(patience, guard.lost()).await;
                if let Ok(lost) = loss {
                    self.told_lost(key, &guard, &lost);
                }
            }
            _ => {
                let result = guard.release().await;
                self.released(key, token, result);
            }
        }
    }

    fn told_lost(&self, key: &'static str, guard: &Guard, lost: &Lost) {
        self.ledger.lost(key, lost);
        if guard.check().is_ok() {
            self.ledger
                .breach(format!("{key}: lost and held at once: {lost}"));
        }
    }

    fn released(
        &self,
        key: &'static str,
        token: FencingToken,
        result: Result<Release, fencelock::Error>,
    ) {
        // `AlreadyGone` may also mean that the guard had given up its belief.
        if let Ok(Release::Released) = result {
            self.ledger.over(key, token, "released");
        }
    }

    /// Mostly short; sometimes longer than a session lives without renewal.
    fn a_while(&self) -> Duration {
        match self.one_of(8) {
            0 => 2 * TTL,
            1 => TTL,
            _ => Duration::from_millis(300),
        }
    }

    async fn pause(&self, longest: Duration) {
        self.runtime.sleep(self.runtime.jitter(longest)).await;
    }

    fn one_of(&self, choices: usize) -> usize {
        let choices = u64::try_from(choices).unwrap();
        usize::try_from(self.runtime.random() % choices).unwrap()
    }
}
