//! The interface of the toy: each call is one step on a state that all processes share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lock_spi::{
    AttemptId, Capabilities, Descriptor, Effect, Error, ErrorKind, Expiry, FencingToken, Grant,
    InsertOutcome, InsertRequest, KeepAliveRequest, KeptAlive, KeyPrefix, LockInfo, LockKey,
    LockOutcome, LockStore, Namespace, OpenSessionRequest, Page, PageRequest, PageToken, Result,
    Revocation, RevokeRequest, Runtime, SessionId, SessionLease, StoreAdmin, TokenSource,
    WaitRequest, WakeUp,
};

use crate::state::{CLAIM, State};

/// How often a waiter looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(crate) struct Toy {
    pub(crate) runtime: Arc<dyn Runtime>,
    state: Arc<Mutex<State>>,
    /// Tells the processes apart.
    process: u64,
}

impl Toy {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            state: Arc::default(),
            process: 0,
        }
    }

    pub(crate) fn another_process(&self) -> Self {
        Self {
            process: self.runtime.random(),
            ..self.clone()
        }
    }

    /// The state as of now: what has expired is gone.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pass(self.runtime.now(), self.runtime.wall_clock());
        state
    }
}

/// A page whose token is the name of the last entry on it.
fn page<T>(entries: impl Iterator<Item = (String, T)>, request: PageRequest) -> Result<Page<T>> {
    const MARK: &str = "after ";
    let refused = || Error::new(ErrorKind::InvalidRequest, Effect::None, "no such page");
    let PageRequest { after, limit } = request;
    let limit = usize::try_from(limit).map_err(|_| refused())?;
    let after = match &after {
        Some(PageToken(text)) => Some(text.strip_prefix(MARK).ok_or_else(refused)?),
        None => None,
    };
    if limit == 0 {
        return Err(refused());
    }
    let mut entries = entries
        .filter(|(name, _)| after.is_none_or(|after| name.as_str() > after))
        .peekable();
    let mut last = None;
    let mut taken = Vec::new();
    while let Some((name, entry)) = entries.next_if(|_| taken.len() < limit) {
        last = Some(PageToken(format!("{MARK}{name}")));
        taken.push(entry);
    }
    Ok(Page {
        next: last.filter(|_| entries.peek().is_some()),
        entries: taken,
    })
}

#[async_trait]
impl LockStore for Toy {
    fn descriptor(&self) -> Descriptor {
        let (tokens, expiry) = (TokenSource::Sequence, Expiry::ByItself);
        Descriptor {
            name: "toy",
            namespace: Namespace::default(),
            capabilities: Capabilities::new(tokens, expiry, WakeUp::Watch, CLAIM * 2),
        }
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        self.state().open_session(request, self.process)
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        Ok(self.state().adopt_session(session, self.process))
    }

    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        Ok(self.state().keep_alive(request))
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        self.state().end_session(session);
        Ok(())
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        self.state().try_insert(request)
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        while !self.state().is_due(&request) {
            self.runtime.sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        Ok(self.state().extend(key, token))
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        Ok(self.state().delete_if_owner(key, token))
    }

    async fn abandon(&self, key: &LockKey, _: SessionId, attempt: AttemptId) -> Result<()> {
        self.state().abandon(key, attempt);
        Ok(())
    }

    async fn read(&self, key: &LockKey) -> Result<LockInfo> {
        Ok(self.state().read(key))
    }

    async fn list(&self, prefix: &KeyPrefix, request: PageRequest) -> Result<Page<LockInfo>> {
        let state = self.state();
        let keys = state.locks.keys();
        let told = keys.filter(|key| key.as_str().starts_with(prefix.as_str()));
        let told = told.map(|key| (key.as_str().to_owned(), state.read(key)));
        page(told, request)
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
        self.state().revoke(request)
    }

    async fn revocations(&self, key: &LockKey, request: PageRequest) -> Result<Page<Revocation>> {
        let state = self.state();
        let own = state.records.iter().filter(|record| record.key == *key);
        let newest_first = own.rev().enumerate();
        let told = newest_first.map(|(at, record)| (format!("{at:09}"), record.clone()));
        page(told, request)
    }

    async fn reap_expired(&self, _: u32) -> Result<u32> {
        Ok(0)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        None
    }
}
