//! What the cluster has committed, told as commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_kv::{EventKind, KeyValue, LeaseId, WatchEvent};
use etcd_mock::{Fact, TICK};
use lock_spi::{AttemptId, FencingToken, SessionId};

use super::names::{self, Holding, Name};
use crate::believers::Believers;
use crate::chronicle::Chronicle;
use crate::record::{Commit, EndCause, Lane, What};

/// Turns facts of the store into commits of the record.
#[derive(Clone, Debug)]
pub(crate) struct Witness {
    chronicle: Chronicle,
    believers: Believers,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    term: u64,
    locks: BTreeMap<Arc<str>, Holding>,
    tickets: BTreeMap<(Arc<str>, AttemptId), SessionId>,
    /// With their deadlines.
    leases: BTreeMap<LeaseId, Duration>,
    /// Those of sessions.
    open: BTreeSet<LeaseId>,
    /// Those of sessions that are over.
    over: BTreeSet<LeaseId>,
    /// Who opened which session, also of those that are over.
    owners: BTreeMap<LeaseId, Lane>,
    /// The lease that was just ended, whose keys go next.
    ended: Option<(LeaseId, EndCause)>,
    highest: Option<FencingToken>,
}

impl Witness {
    pub(crate) fn new(chronicle: Chronicle, believers: Believers) -> Self {
        Self {
            chronicle,
            believers,
            state: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The highest token that was ever committed.
    pub(crate) fn highest(&self) -> Option<FencingToken> {
        self.state().highest
    }

    /// The grant of a lock that stands.
    pub(crate) fn standing(&self, key: &str) -> Option<FencingToken> {
        self.state().locks.get(key).map(|holding| holding.token)
    }

    /// What has become true in the store.
    pub(crate) fn observe(&self, fact: Fact) {
        match fact {
            Fact::Changed(events) => self.changed(&events),
            // A lease alone is no session: its entry makes it one.
            Fact::LeaseGranted { id, ttl: _, until } => {
                self.state().leases.insert(id, after(until));
            }
            Fact::LeaseRenewed { id, until } => {
                let until = after(until);
                self.state().leases.insert(id, until);
                if let Some(session) = self.opened(id) {
                    let lane = self.chronicle.actor();
                    self.tell(&lane, Commit::SessionRenewed { session, until });
                }
            }
            Fact::LeaseEnded { id, expired } => {
                let session = self.opened(id);
                let (lane, cause) = if expired {
                    (Lane::Server, EndCause::Expired)
                } else {
                    (self.chronicle.actor(), EndCause::LeaseRevoked)
                };
                let mut state = self.state();
                state.leases.remove(&id);
                if state.open.remove(&id) {
                    state.over.insert(id);
                }
                state.ended = Some((id, cause));
                drop(state);
                if let Some(session) = session {
                    self.tell(&lane, Commit::SessionEnded { session, cause });
                }
            }
        }
    }

    /// The session of a lease, if it has one that is open.
    fn opened(&self, id: LeaseId) -> Option<SessionId> {
        let open = self.state().open.contains(&id);
        SessionId::new(id.0).ok().filter(|_| open)
    }

    /// A session's entry was written: it begins, or somebody else keeps it from now on.
    fn open(&self, lane: &Lane, session: SessionId, ttl: Duration) {
        let id = LeaseId(session.as_i64());
        let mut state = self.state();
        if state.over.contains(&id) {
            drop(state);
            // Copies of both requests that open a session can do that, long after it was closed. It
            // stays over, so whatever comes to stand under it is wrong.
            let words = format!("an entry of session {session} appears, which is over");
            return self.chronicle.note(lane, What::Note(words));
        }
        let known = !state.open.insert(id);
        let owner = state.owners.entry(id).or_insert_with(|| lane.clone());
        let owner = owner.clone();
        let until = state.leases.get(&id).copied();
        drop(state);
        if known {
            if owner != *lane {
                self.tell(lane, Commit::SessionTaken { session });
            }
            return;
        }
        let lane = owner;
        let owner: Arc<str> = lane.to_string().into();
        let opened = Commit::SessionOpened {
            session,
            owner,
            ttl,
        };
        self.tell(&lane, opened);
        if let Some(until) = until {
            self.tell(&lane, Commit::SessionRenewed { session, until });
        }
    }

    fn tell(&self, lane: &Lane, commit: Commit) {
        self.chronicle.note(lane, What::Committed(commit));
    }

    fn changed(&self, events: &[WatchEvent]) {
        let ended = self.state().ended.take();
        let bound = |event: &WatchEvent| {
            let before = event.prev_kv.as_ref().and_then(|kv| kv.lease);
            ended.filter(|(lease, _)| event.kind == EventKind::Delete && before == Some(*lease))
        };
        let (lane, cause) =
            match ended.filter(|_| events.iter().all(|event| bound(event).is_some())) {
                Some((_, EndCause::Expired)) => (Lane::Server, EndCause::Expired),
                Some((_, cause)) => (self.chronicle.actor(), cause),
                None => (self.chronicle.actor(), EndCause::Deleted),
            };
        let mut changes: Vec<(Name, &WatchEvent)> = events
            .iter()
            .filter_map(|event| Some((Name::of(&event.kv.key)?, event)))
            .collect();
        // First floors, then locks, then the places that were given up for them; a term that rises has
        // ended everything before.
        changes.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut served = Vec::new();
        for (name, event) in changes {
            let put = event.kind == EventKind::Put;
            match name {
                Name::Meta if put => self.meta(&lane, &event.kv),
                Name::Session(session) if put => {
                    if let Some(ttl) = names::ttl(&event.kv) {
                        self.open(&lane, session, ttl);
                    }
                }
                Name::Floor(key) if put => {
                    if let Some(floor) = names::floor(&event.kv) {
                        self.tell(&lane, Commit::FloorRaised { key, floor });
                    }
                }
                Name::Meta | Name::Session(_) | Name::Floor(_) => {}
                Name::Lock(key) if put => served.extend(self.locked(&lane, key, &event.kv)),
                Name::Lock(key) => self.unlocked(&lane, key, cause),
                Name::Ticket(key, attempt) if put => {
                    if let Some(session) = names::waiting(&event.kv) {
                        let place = (Arc::clone(&key), attempt);
                        self.state().tickets.insert(place, session);
                        let queued = Commit::Queued {
                            key,
                            session,
                            attempt,
                        };
                        self.tell(&lane, queued);
                    }
                }
                Name::Ticket(key, attempt) => {
                    self.state().tickets.remove(&(Arc::clone(&key), attempt));
                    let cause = match served.contains(&attempt) {
                        true => EndCause::Served,
                        false => cause,
                    };
                    let left = Commit::Left {
                        key,
                        attempt,
                        cause,
                    };
                    self.tell(&lane, left);
                }
            }
        }
    }

    fn meta(&self, lane: &Lane, kv: &KeyValue) {
        let Some(term) = names::term(kv) else { return };
        let risen = {
            let mut state = self.state();
            let risen = kv.version > 1 && term > state.term;
            state.term = state.term.max(term);
            risen
        };
        if risen {
            self.tell(lane, Commit::Recovered { term });
        }
    }

    fn locked(&self, lane: &Lane, key: Arc<str>, kv: &KeyValue) -> Option<AttemptId> {
        let holding = Holding::of(kv)?;
        let token = holding.token;
        let attempt = holding.attempt;
        let mut state = self.state();
        state.highest = state.highest.max(Some(token));
        state.locks.insert(Arc::clone(&key), holding.clone());
        drop(state);
        if kv.create_revision != kv.mod_revision {
            self.tell(lane, Commit::Rewritten { key, token });
            return None;
        }
        self.tell(lane, granted(key, &holding));
        Some(attempt)
    }

    fn unlocked(&self, lane: &Lane, key: Arc<str>, cause: EndCause) {
        let before = self.state().locks.remove(&key);
        if let Some(Holding { token, .. }) = before {
            self.end(lane, key, token, cause);
        }
    }

    fn end(&self, lane: &Lane, key: Arc<str>, token: FencingToken, cause: EndCause) {
        // Who had given it up before, says so before.
        let ended = Commit::Ended {
            key: Arc::clone(&key),
            token,
            cause,
        };
        self.believers.settle(&key, token);
        self.tell(lane, ended);
        self.believers.ask(&key, token);
    }

    /// The data are others now: those of a backup.
    pub(crate) fn restored(&self, entries: &[KeyValue], leases: &[(LeaseId, i64, u64)]) {
        let lane = &Lane::Operator;
        self.tell(lane, Commit::Restored);
        let mut entries: Vec<&KeyValue> = entries.iter().collect();
        entries.sort_by_key(|kv| kv.create_revision);
        let mut locks = BTreeMap::new();
        let mut tickets = BTreeMap::new();
        let mut order = Vec::new();
        for kv in entries {
            match Name::of(&kv.key) {
                Some(Name::Lock(key)) => {
                    locks.extend(Holding::of(kv).map(|holding| (key, holding)))
                }
                Some(Name::Ticket(key, attempt)) => {
                    if let Some(session) = names::waiting(kv) {
                        tickets.insert((Arc::clone(&key), attempt), session);
                        order.push((key, attempt, session));
                    }
                }
                Some(Name::Meta) => {
                    let term = names::term(kv).unwrap_or_default();
                    self.state().term = term;
                }
                Some(Name::Session(_) | Name::Floor(_)) | None => {}
            }
        }
        self.swap_sessions(leases);
        let mut state = self.state();
        let old_locks = std::mem::replace(&mut state.locks, locks.clone());
        let old_tickets = std::mem::replace(&mut state.tickets, tickets.clone());
        drop(state);
        let cause = EndCause::Restored;
        for (key, holding) in &old_locks {
            if locks.get(key) != Some(holding) {
                self.end(lane, Arc::clone(key), holding.token, cause);
            }
        }
        // Who waits, waits anew, in the order of the backup.
        for (key, attempt) in old_tickets.into_keys() {
            let left = Commit::Left {
                key,
                attempt,
                cause,
            };
            self.tell(lane, left);
        }
        for (key, holding) in &locks {
            if old_locks.get(key) != Some(holding) {
                self.tell(lane, granted(Arc::clone(key), holding));
            }
        }
        for (key, attempt, session) in order {
            let queued = Commit::Queued {
                key,
                session,
                attempt,
            };
            self.tell(lane, queued);
        }
    }

    /// A session stands in the backup if its lease does, though it may have been about to be closed,
    /// and its entry gone.
    fn swap_sessions(&self, leases: &[(LeaseId, i64, u64)]) {
        let lane = &Lane::Operator;
        let mut state = self.state();
        let deadlines = leases.iter().map(|(id, _, until)| (*id, after(*until)));
        state.leases = deadlines.collect();
        let before = std::mem::take(&mut state.open);
        state.over.clear();
        drop(state);
        let cause = EndCause::Restored;
        for id in &before {
            if let Ok(session) = SessionId::new(id.0)
                && !leases.iter().any(|(kept, ..)| kept == id)
            {
                self.tell(lane, Commit::SessionEnded { session, cause });
            }
        }
        for (id, ttl, until) in leases {
            let Ok(session) = SessionId::new(id.0) else {
                continue;
            };
            if before.contains(id) {
                self.state().open.insert(*id);
                let until = after(*until);
                self.tell(lane, Commit::SessionRenewed { session, until });
            } else if self.state().owners.contains_key(id) {
                let ttl = Duration::from_secs(u64::try_from(*ttl).unwrap_or(0));
                self.open(lane, session, ttl);
            }
        }
    }
}

fn granted(key: Arc<str>, holding: &Holding) -> Commit {
    let Holding {
        token,
        session,
        attempt,
    } = *holding;
    Commit::Granted {
        key,
        token,
        session,
        attempt,
    }
}

/// The time of a tick.
fn after(tick: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(tick).unwrap_or(u32::MAX))
}
