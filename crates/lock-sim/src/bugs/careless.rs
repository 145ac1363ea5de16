//! A store between the client and its own, which makes the mistakes that clients make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lock_spi::{
    AttemptId, Descriptor, FencingToken, Grant, InsertOutcome, InsertRequest, KeepAliveRequest,
    KeptAlive, KeyPrefix, LockInfo, LockKey, LockOutcome, LockStore, OpenSessionRequest, Page,
    PageRequest, Place, Result, Revocation, RevokeRequest, Runtime, SessionId, SessionLease,
    StoreAdmin, Ttl, WaitRequest,
};

use super::StoreBug;

/// What is there already when a wait begins was there before the watch.
const AT_ONCE: Duration = Duration::from_millis(40);
/// When a release is repeated.
const REPEATED_AFTER: Duration = Duration::from_millis(700);

#[derive(Clone, Debug)]
pub(super) struct Careless {
    store: Arc<dyn LockStore>,
    runtime: Arc<dyn Runtime>,
    bug: StoreBug,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    ttls: BTreeMap<SessionId, Ttl>,
    /// Attempts that were called off.
    abandoned: BTreeMap<SessionId, BTreeSet<AttemptId>>,
    /// Where attempts wait that have not been woken.
    waiting: BTreeMap<AttemptId, Place>,
}

impl Careless {
    pub(super) fn new(store: Arc<dyn LockStore>, runtime: Arc<dyn Runtime>, bug: StoreBug) -> Self {
        Self {
            store,
            runtime,
            bug,
            memory: Arc::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ttl(&self, session: SessionId) -> Duration {
        let ttl = self.memory().ttls.get(&session).copied();
        ttl.unwrap_or(Ttl::DEFAULT).as_duration()
    }

    /// Ends whatever stands.
    async fn release_again(self, key: LockKey) {
        self.runtime.sleep(REPEATED_AFTER).await;
        if let Ok(info) = self.store.read(&key).await
            && let Some(holder) = info.holder
        {
            drop(self.store.delete_if_owner(&key, holder.token).await);
        }
    }
}

#[async_trait]
impl LockStore for Careless {
    fn descriptor(&self) -> Descriptor {
        self.store.descriptor()
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        let lease = self.store.open_session(request).await?;
        self.memory().ttls.insert(lease.session, lease.ttl);
        Ok(lease)
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        self.store.adopt_session(session).await
    }

    async fn keep_alive(&self, mut request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        let session = request.session;
        let sent = self.runtime.now();
        if self.bug == StoreBug::ForgetsToAbandon {
            let memory = self.memory();
            let abandoned = memory.abandoned.get(&session).into_iter().flatten();
            request.attempts.extend(abandoned);
        }
        let answer = self.store.keep_alive(request).await;
        match self.bug {
            StoreBug::NeverSaysLost if !matches!(answer, Ok(Some(_))) => Ok(Some(KeptAlive {
                remaining: self.ttl(session),
                ..KeptAlive::default()
            })),
            StoreBug::CountsFromTheAnswer => Ok(answer?.map(|kept| {
                let took = self.runtime.now().saturating_since(sent);
                KeptAlive {
                    remaining: self.ttl(session) + took,
                    ..kept
                }
            })),
            _ => answer,
        }
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        self.store.close_session(session).await
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        let attempt = request.attempt;
        if self.bug == StoreBug::WatchesFromNow {
            let waiting = self.memory().waiting.get(&attempt).cloned();
            if let Some(place) = waiting {
                return Ok(InsertOutcome::Queued(place));
            }
        }
        let outcome = self.store.try_insert(request).await?;
        if let InsertOutcome::Queued(place) = &outcome {
            self.memory().waiting.insert(attempt, place.clone());
        }
        Ok(outcome)
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        let attempt = request.attempt;
        let asked = self.runtime.now();
        let answer = self.store.await_release(request).await;
        let took = self.runtime.now().saturating_since(asked);
        if took < AT_ONCE && self.bug == StoreBug::WatchesFromNow {
            return std::future::pending().await;
        }
        self.memory().waiting.remove(&attempt);
        answer
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        self.store.extend(key, token).await
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        match self.bug {
            StoreBug::ReleasesInNameOnly => {
                let (store, key) = (Arc::clone(&self.store), key.clone());
                self.runtime.spawn(Box::pin(async move {
                    drop(store.delete_if_owner(&key, token).await);
                }));
                Ok(true)
            }
            StoreBug::RepeatsReleases => {
                let answer = self.store.delete_if_owner(key, token).await;
                let again = self.clone().release_again(key.clone());
                self.runtime.spawn(Box::pin(again));
                answer
            }
            _ => self.store.delete_if_owner(key, token).await,
        }
    }

    async fn abandon(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> Result<()> {
        if self.bug == StoreBug::ForgetsToAbandon {
            let mut memory = self.memory();
            memory.abandoned.entry(session).or_default().insert(attempt);
            return Ok(());
        }
        self.store.abandon(key, session, attempt).await
    }

    async fn read(&self, key: &LockKey) -> Result<LockInfo> {
        self.store.read(key).await
    }

    async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>> {
        self.store.list(prefix, page).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
        self.store.revoke(request).await
    }

    async fn revocations(&self, key: &LockKey, page: PageRequest) -> Result<Page<Revocation>> {
        self.store.revocations(key, page).await
    }

    async fn reap_expired(&self, limit: u32) -> Result<u32> {
        self.store.reap_expired(limit).await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.store.admin()
    }
}
