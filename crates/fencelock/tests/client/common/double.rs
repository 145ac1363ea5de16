use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Barrier, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use fencelock::spi::{
    AttemptId, Capabilities, Descriptor, Effect, Error, ErrorKind, Expiry, FencingToken, Gone,
    GoneReason, Grant, Holder, InsertOutcome, InsertRequest, Instant, KeepAliveRequest, KeptAlive,
    KeyPrefix, LockInfo, LockKey, LockOutcome, LockStore, Namespace, OpenSessionRequest, Owner,
    Page, PageRequest, Payload, Reason, Result, Revocation, RevokeRequest, Runtime, SessionId,
    SessionLease, StoreAdmin, TaskLost, TokenSource, Ttl, WaitRequest, WakeUp,
};
use tokio::sync::watch;

/// The operations that can be scripted and counted.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Op {
    Abandon,
    Adopt,
    Close,
    Delete,
    Extend,
    Insert,
    KeepAlive,
    Open,
}

impl Op {
    const ALL: [Self; 8] = [
        Self::Abandon,
        Self::Adopt,
        Self::Close,
        Self::Delete,
        Self::Extend,
        Self::Insert,
        Self::KeepAlive,
        Self::Open,
    ];
}

/// What a call does instead of what it should.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Does what it should.
    Pass,
    /// Does it, after this long.
    Slow(Duration),
    /// Does it at once, and answers after this long.
    LateReply(Duration),
    /// Does it; the answer is lost, and the caller is told so.
    LoseReply,
    /// Does nothing and says why.
    Refuse(ErrorKind, Effect),
    /// Does nothing and never answers.
    Hang,
    /// Blocks its thread before it does anything: once to meet whoever waits there, and once more.
    Block(Arc<Barrier>),
    Panic,
    /// Does it after this long, and answers after as long again.
    Travel(Duration),
}

impl Act {
    /// Nothing is known of what became of the call; nothing became of it.
    pub(crate) const TIMEOUT: Self = Self::Refuse(ErrorKind::Unavailable, Effect::Unknown);
}

/// A small store in memory that keeps the contract, except where it is told otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Double {
    runtime: Arc<dyn Runtime>,
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
    min_ttl: Ttl,
    most_grants: Option<u32>,
}

#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<SessionId, Session>,
    closed: BTreeSet<SessionId>,
    locks: BTreeMap<LockKey, Lock>,
    ended: BTreeSet<AttemptId>,
    revoked: BTreeMap<FencingToken, GoneReason>,
    last_token: u64,
    late: BTreeMap<FencingToken, Duration>,
    once: BTreeMap<Op, VecDeque<Act>>,
    always: BTreeMap<Op, Act>,
    calls: Vec<(Op, Instant)>,
    renewals: Vec<KeepAliveRequest>,
}

#[derive(Debug)]
struct Session {
    owner: Owner,
    ttl: Ttl,
    deadline: Instant,
}

#[derive(Debug)]
struct Lock {
    session: SessionId,
    attempt: AttemptId,
    token: FencingToken,
    payload: Payload,
}

impl Double {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            state: Arc::default(),
            changed: watch::Sender::new(0),
            min_ttl: Ttl::MIN,
            most_grants: None,
        }
    }

    pub(crate) fn with_most_grants(mut self, most: u32) -> Self {
        self.most_grants = Some(most);
        self
    }

    pub(crate) fn with_min_ttl(mut self, min_ttl: Ttl) -> Self {
        self.min_ttl = min_ttl;
        self
    }

    /// The same store, in the hands of another runtime.
    pub(crate) fn moved_to(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = runtime;
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let now = self.runtime.now();
        let mut state = self.state.lock().unwrap();
        state.expire(now);
        state
    }

    /// The next calls of an operation do this, one after the other.
    pub(crate) fn next(&self, op: Op, acts: impl IntoIterator<Item = Act>) {
        self.state().once.entry(op).or_default().extend(acts);
    }

    /// All calls of an operation do this, once what comes next is used up.
    pub(crate) fn always(&self, op: Op, act: Act) {
        self.state().always.insert(op, act);
    }

    /// Every operation does this, as one cut off from its store.
    pub(crate) fn cut_off(&self, act: &Act) {
        for op in Op::ALL {
            self.always(op, act.clone());
        }
    }

    /// Requests and replies travel this long each.
    pub(crate) fn slow_down(&self, travel: Duration) {
        self.cut_off(&Act::Travel(travel));
    }

    /// Everything does again what it should.
    pub(crate) fn heal(&self) {
        self.state().always.clear();
        self.state().once.clear();
    }

    pub(crate) fn count(&self, op: Op) -> usize {
        self.times(op).len()
    }

    pub(crate) fn times(&self, op: Op) -> Vec<Instant> {
        let state = self.state();
        let of_op = state.calls.iter().filter(|(called, _)| *called == op);
        of_op.map(|(_, at)| *at).collect()
    }

    /// What the renewals so far asked for.
    pub(crate) fn renewals(&self) -> Vec<KeepAliveRequest> {
        self.state().renewals.clone()
    }

    /// Renewals of sessions do not reach this grant, which has so much left each time.
    pub(crate) fn make_late(&self, token: FencingToken, remaining: Duration) {
        self.state().late.insert(token, remaining);
    }

    /// Who holds a key.
    pub(crate) fn holder(&self, key: &str) -> Option<FencingToken> {
        let state = self.state();
        state
            .locks
            .get(&LockKey::new(key).unwrap())
            .map(|lock| lock.token)
    }

    /// How many sessions and locks there are.
    pub(crate) fn residue(&self) -> (usize, usize) {
        let state = self.state();
        (state.sessions.len(), state.locks.len())
    }

    /// Ends every session behind the clients' backs.
    pub(crate) fn kill_sessions(&self) {
        let mut state = self.state();
        state.sessions.clear();
        let now = self.runtime.now();
        state.expire(now);
        drop(state);
        self.tell();
    }

    /// An administrator ends a grant.
    pub(crate) fn revoke_now(&self, key: &str, by: &str, reason: &str) {
        let mut state = self.state();
        let lock = state.locks.remove(&LockKey::new(key).unwrap()).unwrap();
        let by = Owner::new(by).unwrap();
        let reason = Reason::new(reason).unwrap();
        let told = GoneReason::Revoked { by, reason };
        state.revoked.insert(lock.token, told);
        state.ended.insert(lock.attempt);
        drop(state);
        self.tell();
    }

    fn tell(&self) {
        self.changed.send_modify(|changes| *changes += 1);
    }

    /// Runs one call as scripted, to its end, as every store does. Only a panic meets the caller.
    async fn act<T: Send + 'static>(
        &self,
        op: Op,
        apply: impl FnOnce(&mut State, Instant) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let act = {
            let now = self.runtime.now();
            let mut state = self.state();
            state.calls.push((op, now));
            let once = state.once.get_mut(&op).and_then(VecDeque::pop_front);
            once.or_else(|| state.always.get(&op).cloned())
                .unwrap_or(Act::Pass)
        };
        match &act {
            Act::Panic => panic!("scripted"),
            Act::Block(gate) => {
                gate.wait();
                gate.wait();
            }
            _ => {}
        }
        let double = self.clone();
        let call = async move { double.carry_out(act, apply).await };
        let answer = self.runtime.run_to_end(call).await;
        answer.unwrap_or_else(|TaskLost| {
            let (kind, effect) = (ErrorKind::Unavailable, Effect::Unknown);
            Err(Error::new(kind, effect, "the runtime has ended"))
        })
    }

    async fn carry_out<T>(
        &self,
        act: Act,
        apply: impl FnOnce(&mut State, Instant) -> Result<T>,
    ) -> Result<T> {
        match &act {
            Act::Slow(delay) | Act::Travel(delay) => self.runtime.sleep(*delay).await,
            Act::Refuse(kind, effect) => return Err(Error::new(*kind, *effect, "scripted")),
            Act::Hang => std::future::pending().await,
            Act::Pass | Act::LateReply(_) | Act::LoseReply | Act::Block(_) | Act::Panic => {}
        }
        let answer = apply(&mut self.state(), self.runtime.now());
        self.tell();
        match act {
            Act::LateReply(delay) | Act::Travel(delay) => self.runtime.sleep(delay).await,
            Act::LoseReply => {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    Effect::Unknown,
                    "reply lost",
                ));
            }
            _ => {}
        }
        answer
    }
}

impl State {
    fn expire(&mut self, now: Instant) {
        self.sessions.retain(|_, session| session.deadline > now);
        let dead = |lock: &Lock| !self.sessions.contains_key(&lock.session);
        let ended: Vec<_> = self
            .locks
            .values()
            .filter(|lock| dead(lock))
            .map(|lock| lock.attempt)
            .collect();
        self.ended.extend(ended);
        self.locks
            .retain(|_, lock| self.sessions.contains_key(&lock.session));
    }

    fn insert(&mut self, request: InsertRequest, now: Instant) -> Result<InsertOutcome> {
        let InsertRequest {
            key,
            session,
            attempt,
            payload,
            ..
        } = request;
        let Some(lease) = self.sessions.get(&session) else {
            return Err(gone());
        };
        let remaining = Some(lease.deadline.saturating_since(now));
        if self.ended.contains(&attempt) {
            return Ok(InsertOutcome::Ended);
        }
        match self.locks.get(&key) {
            Some(lock) if lock.attempt == attempt => {}
            Some(lock) => {
                return Ok(InsertOutcome::Held(Some(self.shown(lock))));
            }
            None => {
                self.last_token += 1;
                let lock = Lock {
                    session,
                    attempt,
                    token: FencingToken::new(self.last_token).unwrap(),
                    payload,
                };
                self.locks.insert(key.clone(), lock);
            }
        }
        let token = self.locks[&key].token;
        Ok(InsertOutcome::Granted(Grant {
            key,
            token,
            session,
            remaining,
        }))
    }

    fn shown(&self, lock: &Lock) -> Holder {
        Holder {
            token: lock.token,
            owner: self.sessions[&lock.session].owner.clone(),
            session: lock.session,
            payload: lock.payload.clone(),
            granted_at: Duration::ZERO,
            remaining: None,
        }
    }

    fn keep_alive(&mut self, request: KeepAliveRequest, now: Instant) -> Option<KeptAlive> {
        self.renewals.push(request.clone());
        let KeepAliveRequest {
            session,
            grants,
            attempts,
        } = request;
        let lease = self.sessions.get_mut(&session)?;
        lease.deadline = now + lease.ttl.as_duration();
        let remaining = lease.ttl.as_duration();
        let listed = |lock: &Lock| {
            attempts.contains(&lock.attempt) || grants.iter().any(|grant| grant.token == lock.token)
        };
        let ghost = |lock: &Lock| lock.session == session && !listed(lock);
        let ghosts: Vec<_> = self
            .locks
            .values()
            .filter(|lock| ghost(lock))
            .map(|lock| lock.attempt)
            .collect();
        self.locks.retain(|_, lock| !ghosts.contains(&lock.attempt));
        self.ended.extend(ghosts);
        let stands =
            |key: &LockKey, token| self.locks.get(key).is_some_and(|lock| lock.token == token);
        let late = grants.iter().filter_map(|grant| {
            let remaining = self.late.get(&grant.token)?;
            Some((grant.clone(), *remaining))
        });
        let late = late.collect();
        let gone = grants
            .into_iter()
            .filter(|grant| !stands(&grant.key, grant.token));
        let gone = gone.map(|grant| Gone {
            why: self
                .revoked
                .get(&grant.token)
                .cloned()
                .unwrap_or(GoneReason::Ended),
            key: grant.key,
            token: grant.token,
        });
        Some(KeptAlive {
            remaining,
            gone: gone.collect(),
            late,
        })
    }

    fn delete(&mut self, key: &LockKey, token: FencingToken) -> bool {
        let stands = self.locks.get(key).is_some_and(|lock| lock.token == token);
        if stands {
            let lock = self.locks.remove(key).unwrap();
            self.ended.insert(lock.attempt);
        }
        stands
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::SessionGone, Effect::None, "no such session")
}

fn unscripted<T>() -> Result<T> {
    Err(Error::new(
        ErrorKind::Protocol,
        Effect::None,
        "the double has none of this",
    ))
}

#[async_trait]
impl LockStore for Double {
    fn descriptor(&self) -> Descriptor {
        let mut capabilities = Capabilities::new(
            TokenSource::Sequence,
            Expiry::WhenLookedAt,
            WakeUp::Watch,
            Duration::from_secs(10),
        );
        capabilities.min_ttl = self.min_ttl;
        capabilities.max_grants_per_session = self.most_grants;
        Descriptor {
            name: "double",
            namespace: Namespace::default(),
            capabilities,
        }
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        let OpenSessionRequest {
            session,
            owner,
            ttl,
        } = request;
        self.act(Op::Open, move |state, now| {
            if state.closed.contains(&session) {
                return Err(gone());
            }
            let deadline = now + ttl.as_duration();
            let opened = Session {
                owner,
                ttl,
                deadline,
            };
            state.sessions.entry(session).or_insert(opened);
            Ok(SessionLease {
                session,
                ttl,
                remaining: ttl.as_duration(),
            })
        })
        .await
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        self.act(Op::Adopt, move |state, now| {
            let Some(known) = state.sessions.get_mut(&session) else {
                return Ok(None);
            };
            known.deadline = now + known.ttl.as_duration();
            Ok(Some(SessionLease {
                session,
                ttl: known.ttl,
                remaining: known.ttl.as_duration(),
            }))
        })
        .await
    }

    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        self.act(Op::KeepAlive, move |state, now| {
            Ok(state.keep_alive(request, now))
        })
        .await
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        self.act(Op::Close, move |state, now| {
            state.sessions.remove(&session);
            state.closed.insert(session);
            state.expire(now);
            Ok(())
        })
        .await
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        self.act(Op::Insert, move |state, now| state.insert(request, now))
            .await
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        let mut changed = self.changed.subscribe();
        loop {
            let expiry = {
                let state = self.state();
                match state.locks.get(&request.key) {
                    Some(lock) => state.sessions[&lock.session].deadline,
                    None => return Ok(()),
                }
            };
            tokio::select! {
                biased;
                _ = changed.changed() => {}
                () = self.runtime.sleep_until(expiry) => {}
            }
        }
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        let key = key.clone();
        self.act(Op::Extend, move |state, now| {
            let lock = state.locks.get(&key).filter(|lock| lock.token == token);
            let Some(session) = lock.map(|lock| lock.session) else {
                return Ok(None);
            };
            let lease = state.sessions.get_mut(&session).unwrap();
            lease.deadline = now + lease.ttl.as_duration();
            Ok(Some(Grant {
                key,
                token,
                session,
                remaining: Some(lease.ttl.as_duration()),
            }))
        })
        .await
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        let key = key.clone();
        self.act(Op::Delete, move |state, _| Ok(state.delete(&key, token)))
            .await
    }

    async fn abandon(&self, key: &LockKey, _: SessionId, attempt: AttemptId) -> Result<()> {
        let key = key.clone();
        self.act(Op::Abandon, move |state, _| {
            state.ended.insert(attempt);
            if state
                .locks
                .get(&key)
                .is_some_and(|lock| lock.attempt == attempt)
            {
                state.locks.remove(&key);
            }
            Ok(())
        })
        .await
    }

    async fn read(&self, key: &LockKey) -> Result<LockInfo> {
        let state = self.state();
        Ok(LockInfo {
            key: key.clone(),
            floor: None,
            waiter_count: None,
            holder: state.locks.get(key).map(|lock| state.shown(lock)),
        })
    }

    async fn list(&self, _: &KeyPrefix, _: PageRequest) -> Result<Page<LockInfo>> {
        unscripted()
    }

    async fn revoke(&self, _: RevokeRequest) -> Result<LockOutcome> {
        unscripted()
    }

    async fn revocations(&self, _: &LockKey, _: PageRequest) -> Result<Page<Revocation>> {
        unscripted()
    }

    async fn reap_expired(&self, _: u32) -> Result<u32> {
        Ok(0)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        None
    }
}
