//! What stands, by the order of commits; and what clients were told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{AttemptId, FencingToken, SessionId};

use crate::record::{Answer, Asks, CallId, Commit, EndCause, Entry, Lane, Phase, What};

/// A grant that stands.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) token: FencingToken,
    pub(crate) session: SessionId,
    pub(crate) since: Duration,
}

/// How a grant ended.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) at: Duration,
    pub(crate) by: Lane,
    pub(crate) cause: EndCause,
}

/// A session, also one that has ended.
#[derive(Clone, Debug)]
pub(crate) struct SessionFacts {
    /// Who opened it, and who took it over.
    pub(crate) keepers: Vec<Lane>,
    pub(crate) ttl: Duration,
    /// Its true deadline.
    pub(crate) until: Duration,
    pub(crate) ended: Option<Duration>,
    /// Until when the client may believe in it at least, by what it was told.
    pub(crate) told_until: Option<Duration>,
}

/// A place in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) attempt: AttemptId,
    pub(crate) session: SessionId,
}

/// A grant that a caller was told of.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) lane: Lane,
    /// Whether the caller still has it, for all that it knows.
    pub(crate) open: bool,
}

/// A call that has no answer yet.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) lane: Lane,
    pub(crate) asks: Asks,
    pub(crate) since: Duration,
    /// The highest token of the key that anybody was told of when the call began.
    pub(crate) known: Option<FencingToken>,
}

/// One lock.
#[derive(Debug, Default)]
pub(crate) struct KeyFacts {
    pub(crate) standing: Vec<Standing>,
    pub(crate) past: BTreeMap<FencingToken, Past>,
    pub(crate) queue: Vec<Waiting>,
    /// The highest token that was ever committed.
    pub(crate) highest: Option<FencingToken>,
    pub(crate) floor: Option<FencingToken>,
    /// Since when nobody holds it.
    pub(crate) free_since: Duration,
    pub(crate) told: BTreeMap<FencingToken, Told>,
    /// The highest token that anybody was told of, floors included.
    pub(crate) known: Option<FencingToken>,
}

/// Everything that checkers look things up in.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) keys: BTreeMap<Arc<str>, KeyFacts>,
    pub(crate) sessions: BTreeMap<SessionId, SessionFacts>,
    pub(crate) calls: BTreeMap<CallId, Open>,
    /// By how much clients' clocks ever went wrong. A clock outlives the process that reads it.
    rates: BTreeMap<Arc<str>, u64>,
    pub(crate) crashed: BTreeSet<Lane>,
    pub(crate) phase: Option<Phase>,
    pub(crate) phase_since: Duration,
    /// Since a backup was restored, and until somebody recovers, the store knows less than clients.
    pub(crate) rewound: bool,
    pub(crate) term: u64,
}

impl KeyFacts {
    pub(crate) fn stands(&self, token: FencingToken) -> Option<&Standing> {
        self.standing.iter().find(|grant| grant.token == token)
    }

    /// The token was ended by a person, or by what a person did to the data.
    pub(crate) fn ended_from_outside(&self, token: FencingToken) -> Option<&Past> {
        let past = self.past.get(&token)?;
        (past.by == Lane::Operator || past.cause == EndCause::Restored).then_some(past)
    }

    /// The highest token that this client was told of.
    pub(crate) fn told_to(&self, lane: &Lane) -> Option<FencingToken> {
        let told = self.told.iter().rev();
        let mut own = told.filter(|(_, told)| told.lane == *lane);
        own.next().map(|(token, _)| *token)
    }

    fn know(&mut self, token: FencingToken) {
        self.known = self.known.max(Some(token));
    }
}

impl Truth {
    pub(crate) fn key(&self, key: &str) -> Option<&KeyFacts> {
        self.keys.get(key)
    }

    fn key_mut(&mut self, key: &Arc<str>) -> &mut KeyFacts {
        if !self.keys.contains_key(key) {
            self.keys.insert(Arc::clone(key), KeyFacts::default());
        }
        // Invariant: it was inserted if it was missing.
        self.keys.get_mut(key).expect("present")
    }

    pub(crate) fn rate(&self, lane: &Lane) -> u64 {
        let rate = match lane {
            Lane::Client { name, .. } => self.rates.get(name),
            _ => None,
        };
        rate.copied().unwrap_or_default()
    }

    /// Whether the client keeps this session, as the one who opened it or took it over.
    pub(crate) fn keeps(&self, lane: &Lane, session: SessionId) -> bool {
        let session = self.sessions.get(&session);
        session.is_none_or(|session| session.keepers.contains(lane))
    }

    /// Takes in what happened; checkers have seen it before.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        match &entry.what {
            What::Committed(commit) => self.commit(entry, commit),
            What::Called { call, asks } => self.call(entry, *call, asks),
            What::Answered { call, answer } => self.answer(entry, *call, *answer),
            What::ClockChanged { rate } => {
                if let Lane::Client { name, .. } = &entry.lane {
                    let rates = self.rates.entry(Arc::clone(name)).or_default();
                    *rates = rate.unsigned_abs().max(*rates);
                }
            }
            What::Crashed => {
                self.crashed.insert(entry.lane.clone());
                self.calls.retain(|_, open| open.lane != entry.lane);
                let told = self.keys.values_mut().flat_map(|key| key.told.values_mut());
                for told in told.filter(|told| told.lane == entry.lane) {
                    told.open = false;
                }
            }
            What::Lost { key, token, .. } => self.close(key, *token),
            What::PhaseBegan(phase) => {
                self.phase = Some(*phase);
                self.phase_since = entry.at;
            }
            What::Believes { .. }
            | What::FaultBegan(_)
            | What::FaultEnded(_)
            | What::FaultHappened(_)
            | What::Note(_)
            | What::Panicked
            | What::Paused
            | What::Resumed
            | What::Started
            | What::Wrote { .. } => {}
        }
    }

    fn close(&mut self, key: &Arc<str>, token: FencingToken) {
        if let Some(told) = self.key_mut(key).told.get_mut(&token) {
            told.open = false;
        }
    }

    fn call(&mut self, entry: &Entry, call: CallId, asks: &Asks) {
        let known = asks.key().and_then(|key| self.key_mut(key).known);
        if let Asks::Release { key, token } = asks {
            self.close(key, *token);
        }
        let open = Open {
            lane: entry.lane.clone(),
            asks: asks.clone(),
            since: entry.at,
            known,
        };
        self.calls.insert(call, open);
    }

    fn answer(&mut self, entry: &Entry, call: CallId, answer: Answer) {
        let Some(open) = self.calls.remove(&call) else {
            return;
        };
        match (answer, &open.asks) {
            (Answer::Granted(token), asks) => {
                let Some(key) = asks.key() else { return };
                let adopted = matches!(asks, Asks::Adopt { .. });
                let lane = entry.lane.clone();
                let key = self.key_mut(key);
                key.know(token);
                let told = Told { lane, open: true };
                key.told.insert(token, told);
                let session = key.stands(token).map(|grant| grant.session);
                if let Some(session) = session.and_then(|id| self.sessions.get_mut(&id))
                    && adopted
                {
                    session.keepers.push(entry.lane.clone());
                }
            }
            (Answer::Renewed(left), Asks::Renew { session }) => {
                let until = open.since + left;
                if let Some(session) = self.sessions.get_mut(session) {
                    session.told_until = session.told_until.max(Some(until));
                }
            }
            _ => {}
        }
    }

    fn commit(&mut self, entry: &Entry, commit: &Commit) {
        match commit {
            Commit::Granted {
                key,
                token,
                session,
                attempt,
            } => {
                let facts = self.key_mut(key);
                facts.highest = facts.highest.max(Some(*token));
                facts.past.remove(token);
                facts.queue.retain(|place| place.attempt != *attempt);
                facts.standing.push(Standing {
                    token: *token,
                    session: *session,
                    since: entry.at,
                });
            }
            Commit::Ended { key, token, cause } => {
                let facts = self.key_mut(key);
                facts.standing.retain(|grant| grant.token != *token);
                facts.free_since = entry.at;
                let past = Past {
                    at: entry.at,
                    by: entry.lane.clone(),
                    cause: *cause,
                };
                facts.past.insert(*token, past);
            }
            Commit::Queued {
                key,
                session,
                attempt,
            } => {
                let place = Waiting {
                    attempt: *attempt,
                    session: *session,
                };
                self.key_mut(key).queue.push(place);
            }
            Commit::Left { key, attempt, .. } => {
                let queue = &mut self.key_mut(key).queue;
                queue.retain(|place| place.attempt != *attempt);
            }
            Commit::FloorRaised { key, floor } => {
                let facts = self.key_mut(key);
                facts.floor = facts.floor.max(Some(*floor));
                facts.know(*floor);
            }
            Commit::Rewritten { key, token } => {
                for grant in &mut self.key_mut(key).standing {
                    grant.token = *token;
                }
            }
            Commit::Restored => self.rewound = true,
            Commit::Recovered { term } => {
                self.rewound = false;
                self.term = self.term.max(*term);
            }
            Commit::SessionOpened { session, ttl, .. } => {
                // A backup brings sessions back as they were; whoever took one over since then goes on
                // to end it.
                let known = self.sessions.remove(session);
                let mut keepers = known.map_or_else(Vec::new, |known| known.keepers);
                keepers.push(entry.lane.clone());
                let facts = SessionFacts {
                    keepers,
                    ttl: *ttl,
                    until: entry.at + *ttl,
                    ended: None,
                    told_until: None,
                };
                self.sessions.insert(*session, facts);
            }
            Commit::SessionTaken { session } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.keepers.push(entry.lane.clone());
                }
            }
            Commit::SessionRenewed { session, until } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.until = *until;
                }
            }
            Commit::SessionEnded { session, .. } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.ended.get_or_insert(entry.at);
                }
            }
        }
    }
}
