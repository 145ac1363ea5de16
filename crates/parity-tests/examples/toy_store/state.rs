//! What the toy keeps, and the rules by which it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lock_spi::{
    AttemptId, Effect, Error, ErrorKind, FencingToken, Gone, GoneReason, Grant, GrantRef, Holder,
    InsertOutcome, InsertRequest, Instant, KeepAliveRequest, KeptAlive, LockInfo, LockKey,
    LockOutcome, OpenSessionRequest, Owner, Payload, Place, Queue, Result, Revocation,
    RevokeRequest, RevokeTarget, SessionId, SessionLease, Ttl, WaitRequest,
};

/// How long the first in line may leave a free key alone.
pub(crate) const CLAIM: Duration = Duration::from_secs(12);

#[derive(Debug, Default)]
pub(crate) struct State {
    now: Option<Instant>,
    wall_clock: Duration,
    counter: u64,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    gone: BTreeSet<SessionId>,
    pub(crate) locks: BTreeMap<LockKey, Lock>,
    pub(crate) lines: BTreeMap<LockKey, Vec<Ticket>>,
    freed: BTreeMap<LockKey, Instant>,
    pub(crate) floors: BTreeMap<LockKey, FencingToken>,
    over: BTreeSet<AttemptId>,
    pub(crate) records: Vec<Revocation>,
}

#[derive(Debug)]
pub(crate) struct Session {
    owner: Owner,
    ttl: Ttl,
    deadline: Instant,
    process: u64,
}

#[derive(Debug)]
pub(crate) struct Lock {
    token: FencingToken,
    session: SessionId,
    attempt: AttemptId,
    payload: Payload,
    granted_at: Duration,
}

#[derive(Debug)]
pub(crate) struct Ticket {
    position: u64,
    session: SessionId,
    pub(crate) attempt: AttemptId,
}

fn refused(kind: ErrorKind, message: &'static str) -> Error {
    Error::new(kind, Effect::None, message)
}

impl State {
    fn now(&self) -> Instant {
        self.now.unwrap_or(Instant::from_origin(Duration::ZERO))
    }

    /// Time has passed.
    pub(crate) fn pass(&mut self, now: Instant, wall_clock: Duration) {
        (self.now, self.wall_clock) = (Some(now), wall_clock);
        let sessions = self.sessions.iter();
        let over = sessions.filter(|(_, session)| session.deadline <= now);
        let over: Vec<_> = over.map(|(&id, _)| id).collect();
        for session in over {
            self.end_session(session);
        }
    }

    pub(crate) fn open_session(
        &mut self,
        request: OpenSessionRequest,
        process: u64,
    ) -> Result<SessionLease> {
        let OpenSessionRequest {
            session,
            owner,
            ttl,
        } = request;
        if self.gone.contains(&session) {
            return Err(refused(ErrorKind::SessionGone, "it was closed"));
        }
        let deadline = self.now();
        let known = self.sessions.entry(session).or_insert(Session {
            owner,
            ttl,
            deadline,
            process,
        });
        if known.process != process {
            return Err(refused(ErrorKind::InvalidRequest, "another's session"));
        }
        let lease = self.renew(session);
        lease.ok_or_else(|| refused(ErrorKind::SessionGone, "it has ended"))
    }

    pub(crate) fn adopt_session(
        &mut self,
        session: SessionId,
        process: u64,
    ) -> Option<SessionLease> {
        self.sessions.get_mut(&session)?.process = process;
        self.renew(session)
    }

    fn renew(&mut self, session: SessionId) -> Option<SessionLease> {
        let now = self.now();
        let known = self.sessions.get_mut(&session)?;
        let remaining = known.ttl.as_duration();
        known.deadline = now + remaining;
        Some(SessionLease {
            session,
            ttl: known.ttl,
            remaining,
        })
    }

    pub(crate) fn keep_alive(&mut self, request: KeepAliveRequest) -> Option<KeptAlive> {
        let KeepAliveRequest {
            session,
            grants,
            attempts,
        } = request;
        let remaining = self.renew(session)?.remaining;
        let tokens: BTreeSet<_> = grants.iter().map(|grant| grant.token).collect();
        let mut surplus = Vec::new();
        for (key, lock) in &self.locks {
            let listed = attempts.contains(&lock.attempt) || tokens.contains(&lock.token);
            if lock.session == session && !listed {
                surplus.push((key.clone(), lock.attempt));
            }
        }
        for (key, line) in &self.lines {
            let own = line.iter().filter(|ticket| ticket.session == session);
            let unlisted = own.filter(|ticket| !attempts.contains(&ticket.attempt));
            surplus.extend(unlisted.map(|ticket| (key.clone(), ticket.attempt)));
        }
        for (key, attempt) in surplus {
            self.abandon(&key, attempt);
        }
        let gone = grants.into_iter().filter_map(|grant| self.gone(grant));
        Some(KeptAlive {
            remaining,
            gone: gone.collect(),
            late: Vec::new(),
        })
    }

    fn gone(&self, grant: GrantRef) -> Option<Gone> {
        let GrantRef { key, token } = grant;
        if self.standing(&key, token).is_some() {
            return None;
        }
        let mut records = self.records.iter();
        let record = records.find(|record| record.outcome.previous_token == Some(token));
        let why = record.map_or(GoneReason::Ended, |record| GoneReason::Revoked {
            by: record.by.clone(),
            reason: record.reason.clone(),
        });
        Some(Gone { key, token, why })
    }

    pub(crate) fn end_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.gone.insert(session);
        let held = self.locks.iter();
        let held = held.filter(|(_, lock)| lock.session == session);
        let held: Vec<_> = held.map(|(key, _)| key.clone()).collect();
        for key in held {
            self.end_lock(&key);
        }
        for line in self.lines.values_mut() {
            line.retain(|ticket| ticket.session != session);
        }
    }

    pub(crate) fn end_lock(&mut self, key: &LockKey) {
        if let Some(lock) = self.locks.remove(key) {
            self.over.insert(lock.attempt);
            self.freed.insert(key.clone(), self.now());
        }
    }

    pub(crate) fn try_insert(&mut self, request: InsertRequest) -> Result<InsertOutcome> {
        let InsertRequest {
            key,
            session,
            attempt,
            payload,
            queue,
        } = request;
        if !self.sessions.contains_key(&session) {
            return Err(refused(ErrorKind::SessionGone, "no such session"));
        }
        if self.over.contains(&attempt) {
            return Ok(InsertOutcome::Ended);
        }
        if let Some(lock) = self.locks.get(&key) {
            return Ok(match lock.attempt == attempt {
                true => InsertOutcome::Granted(self.grant(&key, lock)),
                false => self.refuse(&key, session, attempt, queue),
            });
        }
        self.pass_over_sleeper(&key, attempt);
        let line = self.lines.entry(key.clone()).or_default();
        if line.first().is_some_and(|first| first.attempt != attempt) {
            return Ok(self.refuse(&key, session, attempt, queue));
        }
        line.retain(|ticket| ticket.attempt != attempt);
        let lock = Lock {
            token: self.mint(&key)?,
            session,
            attempt,
            payload,
            granted_at: self.wall_clock,
        };
        let grant = self.grant(&key, &lock);
        self.locks.insert(key, lock);
        Ok(InsertOutcome::Granted(grant))
    }

    /// The next token: above every other, and above the floor.
    fn mint(&mut self, key: &LockKey) -> Result<FencingToken> {
        let floor = self.floors.get(key).map_or(0, |floor| floor.as_u64());
        self.counter = self.counter.max(floor) + 1;
        Ok(FencingToken::new(self.counter)?)
    }

    fn refuse(
        &mut self,
        key: &LockKey,
        session: SessionId,
        attempt: AttemptId,
        queue: Queue,
    ) -> InsertOutcome {
        if queue == Queue::Never {
            return InsertOutcome::Held(self.holder(key));
        }
        let line = self.lines.entry(key.clone()).or_default();
        let own = line.iter().position(|ticket| ticket.attempt == attempt);
        let ahead = own.unwrap_or(line.len());
        if own.is_none() {
            self.counter += 1;
            line.push(Ticket {
                position: self.counter,
                session,
                attempt,
            });
        }
        InsertOutcome::Queued(Place {
            position: line[ahead].position,
            ahead: u32::try_from(ahead).ok(),
        })
    }

    fn pass_over_sleeper(&mut self, key: &LockKey, attempt: AttemptId) {
        let now = self.now();
        let Some(line) = self.lines.get_mut(key) else {
            return;
        };
        let freed = self.freed.entry(key.clone()).or_insert(now);
        let sleeps = now.saturating_since(*freed) >= CLAIM;
        if sleeps && line.first().is_some_and(|first| first.attempt != attempt) {
            self.over.insert(line.remove(0).attempt);
            *freed = now;
        }
    }

    /// Whether a waiter has reason to try again.
    pub(crate) fn is_due(&self, request: &WaitRequest) -> bool {
        let line = self.lines.get(&request.key);
        let first = line.and_then(|line| line.first());
        let next = first.is_none_or(|first| first.attempt == request.attempt);
        let free = !self.locks.contains_key(&request.key);
        !self.sessions.contains_key(&request.session) || (free && next)
    }

    pub(crate) fn abandon(&mut self, key: &LockKey, attempt: AttemptId) {
        let held = self.locks.get(key);
        if held.is_some_and(|lock| lock.attempt == attempt) {
            self.end_lock(key);
        }
        if let Some(line) = self.lines.get_mut(key) {
            line.retain(|ticket| ticket.attempt != attempt);
        }
        self.over.insert(attempt);
    }

    fn standing(&self, key: &LockKey, token: FencingToken) -> Option<&Lock> {
        self.locks.get(key).filter(|lock| lock.token == token)
    }

    fn grant(&self, key: &LockKey, lock: &Lock) -> Grant {
        let session = self.sessions.get(&lock.session);
        let left = session.map(|session| session.deadline.saturating_since(self.now()));
        Grant {
            key: key.clone(),
            token: lock.token,
            session: lock.session,
            remaining: left,
        }
    }

    pub(crate) fn extend(&mut self, key: &LockKey, token: FencingToken) -> Option<Grant> {
        let session = self.standing(key, token)?.session;
        self.renew(session)?;
        let lock = self.standing(key, token)?;
        Some(self.grant(key, lock))
    }

    pub(crate) fn delete_if_owner(&mut self, key: &LockKey, token: FencingToken) -> bool {
        let stands = self.standing(key, token).is_some();
        if stands {
            self.end_lock(key);
        }
        stands
    }

    fn holder(&self, key: &LockKey) -> Option<Holder> {
        let lock = self.locks.get(key)?;
        Some(Holder {
            token: lock.token,
            owner: self.sessions.get(&lock.session)?.owner.clone(),
            session: lock.session,
            payload: lock.payload.clone(),
            granted_at: lock.granted_at,
            remaining: self.grant(key, lock).remaining,
        })
    }

    pub(crate) fn read(&self, key: &LockKey) -> LockInfo {
        let waiting = self.lines.get(key).map_or(0, Vec::len);
        LockInfo {
            key: key.clone(),
            floor: self.floors.get(key).copied(),
            waiter_count: u32::try_from(waiting).ok(),
            holder: self.holder(key),
        }
    }

    pub(crate) fn revoke(&mut self, request: RevokeRequest) -> Result<LockOutcome> {
        let RevokeRequest {
            key,
            target,
            id,
            by,
            reason,
        } = request;
        if let Some(record) = self.records.iter().find(|record| record.id == id) {
            return Ok(record.outcome.clone());
        }
        let holder = self.holder(&key);
        let (previous_token, previous_owner) = match holder {
            Some(holder) => (Some(holder.token), Some(holder.owner)),
            None => (None, None),
        };
        if target != RevokeTarget::Whoever
            && Some(target) != previous_token.map(RevokeTarget::Grant)
        {
            return Ok(LockOutcome {
                revoked: false,
                previous_token: None,
                previous_owner: None,
                new_token_floor: self.floors.get(&key).copied(),
            });
        }
        self.end_lock(&key);
        let floor = self.mint(&key)?;
        self.floors.insert(key.clone(), floor);
        let outcome = LockOutcome {
            revoked: previous_token.is_some(),
            previous_token,
            previous_owner,
            new_token_floor: Some(floor),
        };
        self.records.push(Revocation {
            id,
            key,
            by,
            reason,
            at: self.wall_clock,
            outcome: outcome.clone(),
        });
        Ok(outcome)
    }
}
