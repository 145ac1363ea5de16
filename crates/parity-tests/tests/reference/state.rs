//! What the reference store keeps, and the rules by which it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lock_spi::{
    AttemptId, Effect, Error, ErrorKind, FencingToken, Gone, GoneReason, Grant, GrantRef, Holder,
    Instant, KeepAliveRequest, KeptAlive, LockInfo, LockKey, LockOutcome, OpenSessionRequest,
    Owner, Payload, RecoveryId, Result, Revocation, RevokeRequest, RevokeTarget, SessionId,
    SessionLease, Ttl,
};

use crate::flaws::Flaw;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) flaw: Option<Flaw>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) locks: BTreeMap<LockKey, Lock>,
    pub(crate) queues: BTreeMap<LockKey, Vec<Ticket>>,
    pub(crate) floors: BTreeMap<LockKey, FencingToken>,
    pub(crate) records: Vec<Revocation>,
    pub(crate) recovery: Option<(RecoveryId, Instant)>,
    pub(crate) term: u64,
    pub(crate) counter: u64,
    gone: BTreeSet<SessionId>,
    pub(crate) over: BTreeSet<AttemptId>,
    pub(crate) freed: BTreeMap<LockKey, Instant>,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) owner: Owner,
    pub(crate) ttl: Ttl,
    pub(crate) opened_at: Duration,
    deadline: Instant,
    store: u64,
}

#[derive(Debug)]
pub(crate) struct Lock {
    pub(crate) token: FencingToken,
    pub(crate) session: SessionId,
    pub(crate) attempt: AttemptId,
    pub(crate) payload: Payload,
    pub(crate) granted_at: Duration,
}

#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) position: u64,
    pub(crate) session: SessionId,
    pub(crate) attempt: AttemptId,
    pub(crate) queued_at: Duration,
}

/// When an operation takes place.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) wall_clock: Duration,
}

pub(crate) fn refused(kind: ErrorKind, message: &'static str) -> Error {
    Error::new(kind, Effect::None, message)
}

impl State {
    pub(crate) fn new(flaw: Option<Flaw>) -> Self {
        Self {
            flaw,
            sessions: BTreeMap::new(),
            locks: BTreeMap::new(),
            queues: BTreeMap::new(),
            floors: BTreeMap::new(),
            records: Vec::new(),
            recovery: None,
            term: 1,
            counter: 0,
            gone: BTreeSet::new(),
            over: BTreeSet::new(),
            freed: BTreeMap::new(),
        }
    }

    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// The form in which a key is kept.
    pub(crate) fn form(&self, key: &LockKey) -> LockKey {
        match self.flaw {
            Some(Flaw::FoldsCase) => LockKey::new(key.as_str().to_lowercase()).unwrap(),
            _ => key.clone(),
        }
    }

    /// Ends what is over at this moment.
    pub(crate) fn pass(&mut self, now: Instant) {
        let over: Vec<_> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.deadline <= now)
            .map(|(&id, _)| id)
            .collect();
        for session in over {
            self.end_session(session, now);
        }
    }

    pub(crate) fn end_session(&mut self, session: SessionId, now: Instant) {
        self.sessions.remove(&session);
        self.gone.insert(session);
        let held = self
            .locks
            .iter()
            .filter(|(_, lock)| lock.session == session);
        let held: Vec<_> = held.map(|(key, _)| key.clone()).collect();
        for key in held {
            self.end_lock(&key, now);
        }
        if self.has(Flaw::KeepsPlacesOfDeadSessions) {
            return;
        }
        for queue in self.queues.values_mut() {
            queue.retain(|ticket| ticket.session != session);
        }
    }

    pub(crate) fn end_lock(&mut self, key: &LockKey, now: Instant) {
        if let Some(lock) = self.locks.remove(key) {
            if !self.has(Flaw::GrantsEndedAttempts) {
                self.over.insert(lock.attempt);
            }
            self.freed.insert(key.clone(), now);
        }
        if self.has(Flaw::ForgetsTokens) {
            self.counter = 0;
        }
    }

    fn end_all_of(&mut self, key: &LockKey, attempt: AttemptId, now: Instant) {
        if !self.has(Flaw::ForgetsWhatWasAbandoned) {
            self.over.insert(attempt);
        }
        if self
            .locks
            .get(key)
            .is_some_and(|lock| lock.attempt == attempt)
        {
            self.end_lock(key, now);
        }
        if let Some(queue) = self.queues.get_mut(key) {
            queue.retain(|ticket| ticket.attempt != attempt);
        }
    }

    pub(crate) fn closed(&self, now: Instant) -> bool {
        self.recovery.is_some_and(|(_, opens)| now < opens)
    }

    pub(crate) fn open_session(
        &mut self,
        request: OpenSessionRequest,
        store: u64,
        at: Moment,
    ) -> Result<SessionLease> {
        let OpenSessionRequest {
            session,
            owner,
            ttl,
        } = request;
        if self.closed(at.now) {
            return Err(refused(ErrorKind::Unavailable, "closed"));
        }
        if self.gone.contains(&session) {
            return Err(refused(ErrorKind::SessionGone, "it was closed"));
        }
        let known = self.sessions.entry(session).or_insert(Session {
            owner,
            ttl,
            opened_at: at.wall_clock,
            deadline: at.now,
            store,
        });
        if known.store != store {
            return Err(refused(ErrorKind::InvalidRequest, "another's session"));
        }
        known.deadline = at.now + known.ttl.as_duration();
        Ok(SessionLease {
            session,
            ttl: known.ttl,
            remaining: known.ttl.as_duration(),
        })
    }

    pub(crate) fn adopt_session(
        &mut self,
        session: SessionId,
        store: u64,
        at: Moment,
    ) -> Option<SessionLease> {
        let known = self.sessions.get_mut(&session)?;
        known.store = store;
        known.deadline = at.now + known.ttl.as_duration();
        Some(SessionLease {
            session,
            ttl: known.ttl,
            remaining: known.ttl.as_duration(),
        })
    }

    pub(crate) fn keep_alive(
        &mut self,
        request: KeepAliveRequest,
        in_flight: &BTreeSet<AttemptId>,
        at: Moment,
    ) -> Option<KeptAlive> {
        let KeepAliveRequest {
            session,
            grants,
            attempts,
        } = request;
        let remaining = self.renew(session, at.now)?;
        let tokens: BTreeSet<_> = grants.iter().map(|grant| grant.token).collect();
        let known = |attempt| attempts.contains(&attempt) || in_flight.contains(&attempt);
        let mut surplus = Vec::new();
        for (key, lock) in &self.locks {
            let listed = known(lock.attempt) || tokens.contains(&lock.token);
            if lock.session == session && !listed {
                surplus.push((key.clone(), lock.attempt));
            }
        }
        for (key, queue) in &self.queues {
            let own = queue.iter().filter(|ticket| ticket.session == session);
            let unknown = own.filter(|ticket| !known(ticket.attempt));
            surplus.extend(unknown.map(|ticket| (key.clone(), ticket.attempt)));
        }
        if !self.has(Flaw::KeepsWhatIsNotListed) {
            for (key, attempt) in surplus {
                self.end_all_of(&key, attempt, at.now);
            }
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
        let record = self.records.iter().find(|record| {
            self.form(&record.key) == self.form(&key)
                && record.outcome.previous_token == Some(token)
        });
        let why = record.map_or(GoneReason::Ended, |record| GoneReason::Revoked {
            by: record.by.clone(),
            reason: record.reason.clone(),
        });
        Some(Gone { key, token, why })
    }

    fn renew(&mut self, session: SessionId, now: Instant) -> Option<Duration> {
        let session = self.sessions.get_mut(&session)?;
        session.deadline = now + session.ttl.as_duration();
        Some(session.ttl.as_duration())
    }

    fn standing(&self, key: &LockKey, token: FencingToken) -> Option<&Lock> {
        let lock = self.locks.get(&self.form(key))?;
        (lock.token == token).then_some(lock)
    }

    pub(crate) fn grant(&self, key: &LockKey, lock: &Lock) -> Grant {
        Grant {
            key: key.clone(),
            token: lock.token,
            session: lock.session,
            remaining: None,
        }
    }

    pub(crate) fn holder(&self, key: &LockKey) -> Option<Holder> {
        let lock = self.locks.get(key)?;
        Some(Holder {
            token: lock.token,
            owner: self.sessions[&lock.session].owner.clone(),
            session: lock.session,
            payload: lock.payload.clone(),
            granted_at: lock.granted_at,
            remaining: None,
        })
    }

    pub(crate) fn extend(
        &mut self,
        key: &LockKey,
        token: FencingToken,
        at: Moment,
    ) -> Option<Grant> {
        let lock = match self.flaw {
            Some(Flaw::ExtendsWhateverStands) => self.locks.get(&self.form(key)),
            _ => self.standing(key, token),
        }?;
        let grant = Grant {
            token,
            ..self.grant(key, lock)
        };
        let remaining = self.renew(grant.session, at.now);
        Some(Grant { remaining, ..grant })
    }

    pub(crate) fn delete_if_owner(
        &mut self,
        key: &LockKey,
        token: FencingToken,
        at: Moment,
    ) -> bool {
        let form = self.form(key);
        let stands = match self.flaw {
            Some(Flaw::ReleasesByKey) => self.locks.contains_key(&form),
            _ => self.standing(key, token).is_some(),
        };
        if stands {
            self.end_lock(&form, at.now);
        }
        stands
    }

    pub(crate) fn abandon(&mut self, key: &LockKey, attempt: AttemptId, at: Moment) {
        self.end_all_of(&self.form(key), attempt, at.now);
    }

    pub(crate) fn read(&self, key: &LockKey) -> LockInfo {
        let form = self.form(key);
        let waiting = self.queues.get(&form).map_or(0, Vec::len);
        LockInfo {
            key: key.clone(),
            floor: self.floors.get(&form).copied(),
            waiter_count: u32::try_from(waiting).ok(),
            holder: self.holder(&form),
        }
    }

    pub(crate) fn revoke(&mut self, request: RevokeRequest, at: Moment) -> LockOutcome {
        let RevokeRequest {
            key,
            target,
            id,
            by,
            reason,
        } = request;
        let form = self.form(&key);
        let before = self.records.iter().find(|record| record.id == id);
        if let Some(record) = before.filter(|_| !self.has(Flaw::RevokesAgain)) {
            return record.outcome.clone();
        }
        let holder = self.holder(&form);
        let stands = holder
            .as_ref()
            .map(|holder| RevokeTarget::Grant(holder.token));
        if target != RevokeTarget::Whoever && Some(target) != stands {
            return LockOutcome {
                revoked: false,
                previous_token: None,
                previous_owner: None,
                new_token_floor: self.floors.get(&form).copied(),
            };
        }
        self.end_lock(&form, at.now);
        self.counter += 1;
        let above = FencingToken::from_parts(self.term, self.counter).unwrap();
        let floor = self.floors.entry(form).or_insert(above);
        *floor = above.max(*floor);
        let outcome = LockOutcome {
            revoked: holder.is_some(),
            previous_token: holder.as_ref().map(|holder| holder.token),
            previous_owner: holder.map(|holder| holder.owner),
            new_token_floor: Some(*floor),
        };
        let record = Revocation {
            id,
            key,
            by,
            reason,
            at: at.wall_clock,
            outcome: outcome.clone(),
        };
        self.records.insert(0, record);
        outcome
    }

    /// Whether a waiter has reason to try again.
    pub(crate) fn is_due(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> bool {
        let form = self.form(key);
        let line = self.queues.get(&form).map_or(&[][..], Vec::as_slice);
        let place = line.iter().position(|ticket| ticket.attempt == attempt);
        let free = !self.locks.contains_key(&form);
        !self.sessions.contains_key(&session) || (free && place.unwrap_or(0) == 0)
    }
}
