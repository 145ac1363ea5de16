//! What lasted: of a record, from when to when.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{FencingToken, SessionId};

use crate::record::{Answer, Asks, Commit, Entry, FaultName, Lane, What};

/// Something that lasted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) what: Kind,
}

/// What lasted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A client vouched for a grant.
    Believed(FencingToken),
    /// A process was not there, or did not run.
    Down(&'static str),
    /// A grant stood.
    Stood(FencingToken),
    /// A call waited.
    Waited,
}

/// All that is drawn.
#[derive(Debug, Default)]
pub(super) struct Bars {
    /// Of each client and each lock it had to do with.
    pub(super) locks: BTreeMap<(Arc<str>, Arc<str>), Vec<Span>>,
    /// Of each client: when it did not run.
    pub(super) down: BTreeMap<Arc<str>, Vec<Span>>,
    /// Of each fault: when it was there, and whom it hit.
    pub(super) faults: BTreeMap<FaultName, Vec<(Duration, Option<Duration>, Lane)>>,
    /// When clients crashed.
    pub(super) crashes: Vec<(Arc<str>, Duration)>,
}

impl Bars {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let end = entries.last().map_or(Duration::ZERO, |entry| entry.at);
        let mut reader = Reader::default();
        for entry in entries {
            reader.read(entry);
        }
        reader.finish(end)
    }
}

#[derive(Default)]
struct Reader {
    bars: Bars,
    sessions: BTreeMap<SessionId, Arc<str>>,
    standing: BTreeMap<(Arc<str>, FencingToken), (Arc<str>, Duration)>,
    believed: BTreeMap<(Arc<str>, FencingToken), (Arc<str>, Duration)>,
    calls: BTreeMap<crate::record::CallId, (Arc<str>, Asks, Duration)>,
    paused: BTreeMap<Arc<str>, Duration>,
    crashed: BTreeMap<Arc<str>, Duration>,
    faults: BTreeMap<(FaultName, Lane), Duration>,
}

impl Reader {
    fn read(&mut self, entry: &Entry) {
        let name = match &entry.lane {
            Lane::Client { name, .. } => Some(name),
            _ => None,
        };
        match &entry.what {
            What::Committed(commit) => self.read_commit(entry, commit),
            What::FaultBegan(fault) => {
                self.faults.insert((fault, entry.lane.clone()), entry.at);
            }
            What::FaultEnded(fault) => self.end_fault((fault, entry.lane.clone()), entry.at),
            What::FaultHappened(fault) => {
                let faults = self.bars.faults.entry(fault).or_default();
                faults.push((entry.at, None, entry.lane.clone()));
            }
            _ => {
                if let Some(name) = name {
                    self.read_client(entry, name);
                }
            }
        }
    }

    fn read_commit(&mut self, entry: &Entry, commit: &Commit) {
        match commit {
            Commit::SessionOpened { session, owner, .. } => {
                let name = match &entry.lane {
                    Lane::Client { name, .. } => name,
                    _ => owner,
                };
                self.sessions.insert(*session, Arc::clone(name));
            }
            Commit::Granted {
                key,
                token,
                session,
                ..
            } => {
                let owner = self.sessions.get(session).cloned();
                let owner = owner.unwrap_or_else(|| "nobody".into());
                self.standing
                    .insert((Arc::clone(key), *token), (owner, entry.at));
            }
            Commit::Ended { key, token, .. } => {
                let grant = (Arc::clone(key), *token);
                if let Some((owner, from)) = self.standing.remove(&grant) {
                    self.push(&owner, key, from, entry.at, Kind::Stood(*token));
                }
            }
            _ => {}
        }
    }

    fn read_client(&mut self, entry: &Entry, name: &Arc<str>) {
        match &entry.what {
            What::Called { call, asks } => {
                if let Asks::Release { key, token } = asks {
                    self.doubt(key, *token, entry.at);
                }
                let open = (Arc::clone(name), asks.clone(), entry.at);
                self.calls.insert(*call, open);
            }
            What::Answered { call, answer } => {
                let Some((_, asks, since)) = self.calls.remove(call) else {
                    return;
                };
                let Some(key) = asks.key() else { return };
                if asks.wishes() {
                    self.push(name, key, since, entry.at, Kind::Waited);
                }
                if let Answer::Granted(token) = answer {
                    let believed = (Arc::clone(name), entry.at);
                    self.believed.insert((Arc::clone(key), *token), believed);
                }
            }
            What::Believes { key, token } => {
                let believed = (Arc::clone(name), entry.at);
                self.believed
                    .entry((Arc::clone(key), *token))
                    .or_insert(believed);
            }
            What::Lost { key, token, .. } => self.doubt(key, *token, entry.at),
            What::Paused => drop(self.paused.insert(Arc::clone(name), entry.at)),
            What::Resumed => {
                if let Some(from) = self.paused.remove(name) {
                    self.be_down(name, from, entry.at, "stands still");
                }
            }
            What::Crashed => {
                self.bars.crashes.push((Arc::clone(name), entry.at));
                self.crashed.insert(Arc::clone(name), entry.at);
                self.forget(name, entry.at);
            }
            What::Started => {
                if let Some(from) = self.crashed.remove(name) {
                    self.be_down(name, from, entry.at, "is down");
                }
            }
            _ => {}
        }
    }

    /// What a process knew ends with it.
    fn forget(&mut self, name: &Arc<str>, at: Duration) {
        let of_it = |(owner, _): &(Arc<str>, Duration)| owner == name;
        let gone: Vec<_> = self
            .believed
            .iter()
            .filter(|(_, believed)| of_it(believed))
            .map(|(grant, _)| grant.clone())
            .collect();
        for (key, token) in gone {
            self.doubt(&key, token, at);
        }
        self.calls.retain(|_, (owner, ..)| owner != name);
    }

    fn doubt(&mut self, key: &Arc<str>, token: FencingToken, at: Duration) {
        if let Some((name, from)) = self.believed.remove(&(Arc::clone(key), token)) {
            self.push(&name, key, from, at, Kind::Believed(token));
        }
    }

    fn push(&mut self, name: &Arc<str>, key: &Arc<str>, from: Duration, to: Duration, what: Kind) {
        let row = (Arc::clone(name), Arc::clone(key));
        let spans = self.bars.locks.entry(row).or_default();
        spans.push(Span { from, to, what });
    }

    fn be_down(&mut self, name: &Arc<str>, from: Duration, to: Duration, how: &'static str) {
        let what = Kind::Down(how);
        let spans = self.bars.down.entry(Arc::clone(name)).or_default();
        spans.push(Span { from, to, what });
    }

    fn end_fault(&mut self, fault: (FaultName, Lane), at: Duration) {
        if let Some(from) = self.faults.remove(&fault) {
            let faults = self.bars.faults.entry(fault.0).or_default();
            faults.push((from, Some(at), fault.1));
        }
    }

    /// What had no end lasts until the end of all.
    fn finish(mut self, end: Duration) -> Bars {
        for ((key, token), (owner, from)) in std::mem::take(&mut self.standing) {
            self.push(&owner, &key, from, end, Kind::Stood(token));
        }
        for ((key, token), _) in self.believed.clone() {
            self.doubt(&key, token, end);
        }
        for (name, asks, from) in std::mem::take(&mut self.calls).into_values() {
            if let (true, Some(key)) = (asks.wishes(), asks.key()) {
                self.push(&name, key, from, end, Kind::Waited);
            }
        }
        for (name, from) in std::mem::take(&mut self.paused) {
            self.be_down(&name, from, end, "stands still");
        }
        for (name, from) in std::mem::take(&mut self.crashed) {
            self.be_down(&name, from, end, "is down");
        }
        for fault in self.faults.keys().cloned().collect::<Vec<_>>() {
            self.end_fault(fault, end);
        }
        self.bars
    }
}
