//! A node's store, with what it is asked written down.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lock_spi::{
    AttemptId, Descriptor, FencingToken, Grant, InsertOutcome, InsertRequest, KeepAliveRequest,
    KeptAlive, KeyPrefix, LockInfo, LockKey, LockOutcome, LockStore, OpenSessionRequest, Page,
    PageRequest, Queue, Result, Revocation, RevokeRequest, SessionId, SessionLease, StoreAdmin,
    WaitRequest,
};

use crate::chronicle::Chronicle;
use crate::open_call::OpenCall;
use crate::record::{Answer, Asks, Lane};

/// What is written down of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Watching {
    /// Renewals: its caller writes wishes and releases down.
    Renewals,
    /// Wishes and releases, since its caller writes nothing down.
    Wishes,
}

#[derive(Debug)]
pub(crate) struct Recorded {
    store: Arc<dyn LockStore>,
    chronicle: Chronicle,
    lane: Lane,
    watching: Watching,
    /// What was granted to which attempts.
    granted: Mutex<BTreeMap<AttemptId, FencingToken>>,
}

impl Recorded {
    pub(crate) const fn new(
        store: Arc<dyn LockStore>,
        chronicle: Chronicle,
        lane: Lane,
        watching: Watching,
    ) -> Self {
        Self {
            store,
            chronicle,
            lane,
            watching,
            granted: Mutex::new(BTreeMap::new()),
        }
    }

    fn granted(&self) -> MutexGuard<'_, BTreeMap<AttemptId, FencingToken>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, asks: Asks) -> OpenCall {
        OpenCall::begin(&self.chronicle, &self.lane, asks)
    }

    fn watched(&self, asks: impl FnOnce() -> Asks) -> Option<OpenCall> {
        (self.watching == Watching::Wishes).then(|| self.begin(asks()))
    }
}

#[async_trait]
impl LockStore for Recorded {
    fn descriptor(&self) -> Descriptor {
        self.store.descriptor()
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        self.store.open_session(request).await
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        self.store.adopt_session(session).await
    }

    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        let session = request.session;
        let call =
            (self.watching == Watching::Renewals).then(|| self.begin(Asks::Renew { session }));
        let answer = self.store.keep_alive(request).await;
        if let Some(call) = call {
            call.answer(match &answer {
                Ok(Some(kept)) => Answer::Renewed(kept.remaining),
                Ok(None) => Answer::Gone,
                Err(_) => Answer::Failed,
            });
        }
        answer
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        self.store.close_session(session).await
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        let call = self.watched(|| {
            let key = request.key.as_str().into();
            match request.queue {
                Queue::Never => Asks::Try { key },
                Queue::Join => Asks::Acquire { key },
            }
        });
        let attempt = request.attempt;
        let answer = self.store.try_insert(request).await;
        let Some(call) = call else { return answer };
        match &answer {
            Ok(InsertOutcome::Granted(grant)) => {
                let known = self.granted().insert(attempt, grant.token);
                match known {
                    // A repetition is answered as it was before.
                    Some(_) => call.leave(),
                    None => call.answer(Answer::Granted(grant.token)),
                }
            }
            Ok(_) => call.answer(Answer::Held),
            Err(_) => call.answer(Answer::Cancelled),
        }
        answer
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        self.store.await_release(request).await
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        self.store.extend(key, token).await
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        let call = self.watched(|| Asks::Release {
            key: key.as_str().into(),
            token,
        });
        let answer = self.store.delete_if_owner(key, token).await;
        if let Some(call) = call {
            call.answer(match &answer {
                Ok(true) => Answer::Released,
                Ok(false) => Answer::Gone,
                Err(_) => Answer::Failed,
            });
        }
        answer
    }

    async fn abandon(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> Result<()> {
        let granted = self.granted().remove(&attempt);
        if let Some(token) = granted {
            let key = key.as_str().into();
            self.begin(Asks::Release { key, token }).leave();
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
