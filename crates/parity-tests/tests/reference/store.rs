//! The reference store: one state, behind a lock, for all its store objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use lock_spi::{
    AttemptId, Capabilities, Descriptor, Effect, Error, ErrorKind, Expiry, FencingToken, Grant,
    InsertOutcome, InsertRequest, KeepAliveRequest, KeptAlive, KeyPrefix, LockInfo, LockKey,
    LockOutcome, LockStore, Namespace, OpenSessionRequest, Page, PageRequest, PageToken, Result,
    Revocation, RevokeRequest, Runtime, SessionId, SessionLease, StoreAdmin, TokenSource,
    WaitRequest, WakeUp,
};

use crate::flaws::Flaw;
use crate::insert::CLAIM;
use crate::line::Line;
use crate::state::{Moment, State};

/// How long a call takes to arrive, at least; at most twice as long.
const JOURNEY: Duration = Duration::from_millis(1);
/// How long an answer is waited for.
const LIMIT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct ReferenceStore {
    /// Tells the store objects apart.
    id: u64,
    runtime: Arc<dyn Runtime>,
    state: Arc<Mutex<State>>,
    in_flight: Arc<Mutex<Inserts>>,
    line: Line,
}

/// Which inserts are under way, and which renewals watch them.
#[derive(Debug, Default)]
struct Inserts {
    under_way: Vec<AttemptId>,
    watched: BTreeMap<u64, BTreeSet<AttemptId>>,
}

impl ReferenceStore {
    pub(crate) fn new(id: u64, runtime: Arc<dyn Runtime>, state: Arc<Mutex<State>>) -> Self {
        Self {
            id,
            runtime,
            state,
            in_flight: Arc::default(),
            line: Line::new(),
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment {
            now: self.runtime.now(),
            wall_clock: self.runtime.wall_clock(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap();
        state.pass(self.runtime.now());
        state
    }

    pub(crate) fn line(&self) -> Line {
        self.line.clone()
    }

    /// Runs an operation that changes something to its end, whoever waits for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut State, Moment) -> T + Send + 'static,
    ) -> Result<T> {
        let (store, stops_when_dropped) = (self.clone(), self.has(Flaw::StopsWhenDropped));
        let task = async move {
            store.arrival().await;
            if store.line.loses_request() {
                return Err(unanswered(Effect::Unknown));
            }
            let answer = operation(&mut store.state(), store.moment());
            match store.line.loses_reply() {
                true => Err(unanswered(Effect::Unknown)),
                false => Ok(answer),
            }
        };
        if stops_when_dropped {
            return task.await;
        }
        let answer = self.runtime.timeout(LIMIT, self.runtime.run_to_end(task));
        match answer.await {
            Ok(joined) => joined.unwrap(),
            Err(_) => Err(unanswered(Effect::Unknown)),
        }
    }

    /// Looks at the state.
    pub(crate) async fn look<T: Send>(&self, look: impl FnOnce(&State) -> T + Send) -> Result<T> {
        let seen = async {
            self.arrival().await;
            look(&self.state())
        };
        let seen = self.runtime.timeout(LIMIT, seen).await;
        seen.map_err(|_| unanswered(Effect::None))
    }

    /// Resolves when a request has arrived, if it does.
    async fn arrival(&self) {
        let cut = self.line.is_cut();
        self.runtime
            .sleep(JOURNEY + self.runtime.jitter(JOURNEY))
            .await;
        self.line.arrival().await;
        if cut || self.line.is_cut() {
            std::future::pending().await
        }
    }

    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.state().flaw == Some(flaw)
    }
}

fn unanswered(effect: Effect) -> Error {
    Error::new(ErrorKind::Unavailable, effect, "no answer")
}

/// An insert that is under way.
struct UnderWay {
    attempt: AttemptId,
    inserts: Arc<Mutex<Inserts>>,
}

impl UnderWay {
    fn begin(inserts: &Arc<Mutex<Inserts>>, attempt: AttemptId) -> Self {
        let mut known = inserts.lock().unwrap();
        known.under_way.push(attempt);
        for seen in known.watched.values_mut() {
            seen.insert(attempt);
        }
        Self {
            attempt,
            inserts: Arc::clone(inserts),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut known = self.inserts.lock().unwrap();
        let mut under_way = known.under_way.iter();
        let at = under_way.position(|&known| known == self.attempt);
        known.under_way.swap_remove(at.unwrap());
    }
}

impl Inserts {
    fn watch(&mut self, renewal: u64) {
        let seen = self.under_way.iter().copied().collect();
        self.watched.insert(renewal, seen);
    }

    /// What was under way at any moment since the renewal began.
    fn seen_by(&mut self, renewal: u64) -> BTreeSet<AttemptId> {
        self.watched.remove(&renewal).unwrap()
    }
}

/// A part of a listing whose page tokens are positions.
pub(crate) fn page<T>(entries: impl Iterator<Item = T>, request: &PageRequest) -> Result<Page<T>> {
    let refused = || Error::new(ErrorKind::InvalidRequest, Effect::None, "no such page");
    let limit = usize::try_from(request.limit).unwrap();
    let start = match &request.after {
        Some(PageToken(text)) => text.parse().map_err(|_| refused())?,
        None => 0,
    };
    if limit == 0 {
        return Err(refused());
    }
    let mut entries = entries.skip(start).peekable();
    let taken: Vec<T> = entries.by_ref().take(limit).collect();
    let next = entries
        .peek()
        .map(|_| PageToken((start + taken.len()).to_string()));
    Ok(Page {
        entries: taken,
        next,
    })
}

/// The same, of keys, whose page tokens are the last key told: entries come and go.
fn page_of_keys(entries: Vec<LockInfo>, request: &PageRequest) -> Result<Page<LockInfo>> {
    let refused = || Error::new(ErrorKind::InvalidRequest, Effect::None, "no such page");
    let after = match &request.after {
        Some(PageToken(text)) => Some(text.strip_prefix("after ").ok_or_else(refused)?),
        None => None,
    };
    let later = |info: &LockInfo| after.is_none_or(|after| info.key.as_str() > after);
    let first = PageRequest {
        after: None,
        limit: request.limit,
    };
    let mut page = page(entries.into_iter().filter(later), &first)?;
    let last = page.entries.last().map(|info| info.key.as_str());
    let last = last.map(|key| PageToken(format!("after {key}")));
    page.next = page.next.and(last);
    Ok(page)
}

#[async_trait]
impl LockStore for ReferenceStore {
    fn descriptor(&self) -> Descriptor {
        let capabilities = Capabilities::new(
            TokenSource::Sequence,
            Expiry::ByItself,
            WakeUp::Watch,
            CLAIM * 2,
        );
        Descriptor {
            name: "reference",
            namespace: Namespace::default(),
            capabilities,
        }
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        let id = self.id;
        self.run(move |state, at| state.open_session(request, id, at))
            .await?
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        let id = self.id;
        self.run(move |state, at| state.adopt_session(session, id, at))
            .await
    }

    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        let renewal = self.runtime.random();
        let in_flight = Arc::clone(&self.in_flight);
        in_flight.lock().unwrap().watch(renewal);
        self.run(move |state, at| {
            let seen = in_flight.lock().unwrap().seen_by(renewal);
            state.keep_alive(request, &seen, at)
        })
        .await
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        self.run(move |state, at| state.end_session(session, at.now))
            .await
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        let under_way = UnderWay::begin(&self.in_flight, request.attempt);
        self.run(move |state, at| {
            let outcome = state.try_insert(request, at);
            drop(under_way);
            outcome
        })
        .await?
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        let WaitRequest {
            key,
            session,
            attempt,
            place: _,
        } = request;
        let is_due = || self.look(|state| state.is_due(&key, session, attempt));
        while self.has(Flaw::MissesEarlyReleases) && is_due().await? {}
        while !is_due().await? {
            self.runtime.sleep(JOURNEY * 20).await;
        }
        Ok(())
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        let key = key.clone();
        let answer = self.run(move |state, at| state.extend(&key, token, at));
        match answer.await {
            Err(_) if self.has(Flaw::TakesSilenceForLoss) => Ok(None),
            answer => answer,
        }
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        let key = key.clone();
        self.run(move |state, at| state.delete_if_owner(&key, token, at))
            .await
    }

    async fn abandon(&self, key: &LockKey, _session: SessionId, attempt: AttemptId) -> Result<()> {
        let key = key.clone();
        self.run(move |state, at| state.abandon(&key, attempt, at))
            .await
    }

    async fn read(&self, key: &LockKey) -> Result<LockInfo> {
        self.look(|state| state.read(key)).await
    }

    async fn list(&self, prefix: &KeyPrefix, request: PageRequest) -> Result<Page<LockInfo>> {
        let start = match self.has(Flaw::ListsByPathSegment) {
            true => prefix.as_str().trim_end_matches('/'),
            false => prefix.as_str(),
        };
        let all = self.look(|state| {
            let keys = state.locks.keys();
            let told = keys.filter(|key| key.as_str().starts_with(start));
            told.map(|key| state.read(key)).collect()
        });
        page_of_keys(all.await?, &request)
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
        self.run(move |state, at| state.revoke(request, at)).await
    }

    async fn revocations(&self, key: &LockKey, request: PageRequest) -> Result<Page<Revocation>> {
        let records = self.look(|state| {
            let own = state.records.iter().filter(|record| record.key == *key);
            own.cloned().collect::<Vec<_>>()
        });
        page(records.await?.into_iter(), &request)
    }

    async fn reap_expired(&self, _limit: u32) -> Result<u32> {
        Ok(0)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }
}
