//! What must be true of a walk, and what is not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use etcd_kv::EventKind;
use lock_spi::{AttemptId, FencingToken, Instant, SessionId};

use super::Tale;
use super::history::{Change, Held, Moment, Name};

/// Nobody is skipped sooner.
const LEAST_SKIP: Duration = Duration::from_secs(12);
/// A real server, on a machine that is busy, may lag so far behind its changes when it tells them.
const LAG: Duration = Duration::from_secs(5);

/// What is wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wrong {
    /// Somebody was granted before who was in line before.
    Barged,
    /// A walker saw what must not be.
    Complained,
    /// A grant or place that nobody had ended.
    EndedByNobody,
    /// What stands belongs to nobody.
    Ghost,
    /// An attempt had a second grant.
    GrantedAgain,
    /// A lock or place without a lease.
    Immortal,
    /// After it was over, an attempt had a grant or a place.
    Late,
    /// Somebody never came to the end.
    Stuck,
    /// A token that does not rise, or not above the floor.
    TokenTooLow,
    /// A second grant beside one that stood.
    TwoHolders,
    /// A walker was told what was not so.
    Untrue,
}

/// Something that is wrong.
pub(crate) struct Finding {
    pub(crate) wrong: Wrong,
    revision: i64,
    details: String,
}

impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wrong,
            revision,
            details,
        } = self;
        write!(f, "{wrong:?} at {revision}: {details}")
    }
}

/// What is known of a grant that was made.
struct Granted {
    attempt: AttemptId,
    session: SessionId,
    token: FencingToken,
    ended: Option<i64>,
}

#[derive(Default)]
struct Key {
    standing: Option<FencingToken>,
    free_since: Option<Instant>,
    last: Option<FencingToken>,
    floor: u64,
    /// The attempts that wait, by their places, with their sessions.
    queue: BTreeMap<i64, (AttemptId, SessionId)>,
}

/// Goes through a history.
struct Replay<'a> {
    tale: &'a Tale,
    /// Whether copies of requests were made on the way: they may make ghosts for a while.
    copies: bool,
    keys: BTreeMap<String, Key>,
    sessions: BTreeSet<SessionId>,
    grants: BTreeMap<i64, Granted>,
    findings: Vec<Finding>,
}

impl Tale {
    /// All that is wrong with it.
    pub(crate) fn findings(&self, copies: bool) -> Vec<Finding> {
        let mut replay = Replay {
            tale: self,
            copies,
            keys: BTreeMap::new(),
            sessions: BTreeSet::new(),
            grants: BTreeMap::new(),
            findings: Vec::new(),
        };
        for moment in &self.history {
            replay.play(moment);
        }
        replay.compare_with_what_was_told();
        replay.findings
    }

    /// How many grants there were.
    pub(crate) fn grants(&self) -> usize {
        let changes = self.history.iter().flat_map(|moment| &moment.changes);
        changes.filter(|change| is_grant(change)).count()
    }
}

fn is_grant(change: &Change) -> bool {
    matches!(change.of, Name::Lock(_)) && change.kind == EventKind::Put
}

impl Replay<'_> {
    fn wrong(&mut self, wrong: Wrong, revision: i64, details: impl Into<String>) {
        self.findings.push(Finding {
            wrong,
            revision,
            details: details.into(),
        });
    }

    fn play(&mut self, moment: &Moment) {
        // What a session takes with it may come before it in its own moment.
        for change in &moment.changes {
            if let Name::Session(session) = change.of {
                self.session(session, change.kind, moment);
            }
        }
        for change in &moment.changes {
            let revision = moment.revision;
            match (&change.of, change.kind) {
                (Name::Floor(key), EventKind::Put) => {
                    let floor = std::str::from_utf8(&change.kv.value).unwrap();
                    self.key(key).floor = floor.parse().unwrap();
                }
                (Name::Lock(key), EventKind::Put) => self.granted(key, change, moment),
                (Name::Lock(key), EventKind::Delete) => self.ended(key, moment),
                (Name::Ticket(key, attempt), EventKind::Put) => {
                    let session = session_of(change);
                    let place = change.kv.create_revision;
                    self.key(key).queue.insert(place, (*attempt, session));
                    self.not_late(*attempt, revision);
                    self.leased(change, revision);
                }
                (Name::Ticket(key, attempt), EventKind::Delete) => {
                    self.left(key, *attempt, moment);
                }
                _ => {}
            }
        }
        if !self.copies {
            self.no_place_outlives_its_turn(moment.revision);
        }
    }

    fn no_place_outlives_its_turn(&mut self, revision: i64) {
        let outlived = |key: &Key| {
            let holder = key.standing.map(revision_of)?;
            let holder = self.grants.get(&holder)?.attempt;
            let waits = key.queue.values().any(|(attempt, _)| *attempt == holder);
            waits.then_some(holder)
        };
        let holders: Vec<_> = self.keys.values().filter_map(outlived).collect();
        for holder in holders {
            let details = format!("{holder} holds, and its place stands");
            self.wrong(Wrong::Ghost, revision, details);
        }
    }

    fn key(&mut self, name: &str) -> &mut Key {
        self.keys.entry(name.to_owned()).or_default()
    }

    fn session(&mut self, session: SessionId, kind: EventKind, moment: &Moment) {
        if kind == EventKind::Put {
            self.sessions.insert(session);
            return;
        }
        self.sessions.remove(&session);
        let told = &self.tale.told;
        let believed = told.believed.get(&session);
        let early = believed.is_some_and(|until| moment.at < *until);
        if early && !told.ended.contains(&session) {
            let details = format!("session {session}, before its time");
            self.wrong(Wrong::EndedByNobody, moment.revision, details);
        }
    }

    fn leased(&mut self, change: &Change, revision: i64) {
        if change.kv.lease.is_none() {
            self.wrong(Wrong::Immortal, revision, format!("{:?}", change.of));
        }
    }

    fn not_late(&mut self, attempt: AttemptId, revision: i64) {
        let over = self.tale.told.over.get(&attempt);
        if !self.copies && over.is_some_and(|over| *over < revision) {
            self.wrong(Wrong::Late, revision, attempt.to_string());
        }
    }

    fn granted(&mut self, name: &str, change: &Change, moment: &Moment) {
        let revision = moment.revision;
        let Held {
            attempt,
            session,
            token,
        } = Held::read(&change.kv);
        self.leased(change, revision);
        self.not_late(attempt, revision);
        let key = self.key(name);
        let (standing, floor) = (key.standing.replace(token), key.floor);
        let last = key.last.replace(token);
        if let Some(standing) = standing {
            let details = format!("{name}: {token} beside {standing}");
            self.wrong(Wrong::TwoHolders, revision, details);
        }
        if last.is_some_and(|last| token <= last) || token.as_u64() <= floor {
            let details = format!("{name}: {token} after {last:?}, floor {floor}");
            self.wrong(Wrong::TokenTooLow, revision, details);
        }
        let before = self.grants.values().find(|grant| grant.attempt == attempt);
        if !self.copies && before.is_some_and(|before| !self.ended_unseen(before)) {
            self.wrong(Wrong::GrantedAgain, revision, attempt.to_string());
        }
        let granted = Granted {
            attempt,
            session,
            token,
            ended: None,
        };
        self.grants.insert(revision, granted);
        self.in_turn(name, attempt, moment);
    }

    /// Whether nobody knew of a grant when it was deleted by hand: its attempt may come again.
    fn ended_unseen(&self, grant: &Granted) -> bool {
        let told = &self.tale.told;
        !told.granted.contains_key(&grant.token)
            && grant
                .ended
                .is_some_and(|ended| told.by_hand.contains(&ended))
    }

    /// Who comes before others must have skipped them, after they had their time.
    fn in_turn(&mut self, name: &str, attempt: AttemptId, moment: &Moment) {
        let key = self.key(name);
        let own = key.queue.iter().find(|(_, (other, _))| *other == attempt);
        let own = own.map_or(i64::MAX, |(place, _)| *place);
        let passed: Vec<_> = key
            .queue
            .range(..own)
            .map(|(_, (other, _))| *other)
            .collect();
        let free_since = key.free_since;
        for other in passed {
            let skipped = own < i64::MAX && deletes_ticket(moment, other);
            let free = free_since.map(|since| moment.at.saturating_since(since));
            if !skipped || free.is_none_or(|free| free + LAG < LEAST_SKIP) {
                let details = format!("{attempt} before {other}, free for {free:?}");
                self.wrong(Wrong::Barged, moment.revision, details);
            }
        }
    }

    fn ended(&mut self, name: &str, moment: &Moment) {
        let (revision, key) = (moment.revision, self.key(name));
        key.free_since = Some(moment.at);
        let Some(token) = key.standing.take() else {
            return;
        };
        let Some(grant) = self.grants.get_mut(&revision_of(token)) else {
            return;
        };
        grant.ended = Some(revision);
        let (attempt, session) = (grant.attempt, grant.session);
        let told = &self.tale.told;
        let revoked = |change: &Change| matches!(change.of, Name::Revocation(_));
        let by_somebody = moment.changes.iter().any(revoked)
            || told.by_hand.contains(&revision)
            || self.let_go(attempt, revision)
            || !self.sessions.contains(&session);
        if !by_somebody {
            let details = format!("{name}: {token} of {attempt}");
            self.wrong(Wrong::EndedByNobody, revision, details);
        }
    }

    fn let_go(&self, attempt: AttemptId, revision: i64) -> bool {
        let let_go = self.tale.told.let_go.get(&attempt);
        let_go.is_some_and(|from| *from < revision)
    }

    /// A place goes by being taken, skipped, given up, or with its session.
    fn left(&mut self, name: &str, attempt: AttemptId, moment: &Moment) {
        let key = self.key(name);
        let place = key.queue.iter().find(|(_, (other, _))| *other == attempt);
        let Some((place, session)) = place.map(|(place, (_, session))| (*place, *session)) else {
            return;
        };
        key.queue.remove(&place);
        let taken = moment.changes.iter().any(is_grant);
        let let_go = self.let_go(attempt, moment.revision);
        if !taken && !let_go && self.sessions.contains(&session) {
            let details = format!("{name}: the place of {attempt}");
            self.wrong(Wrong::EndedByNobody, moment.revision, details);
        }
    }

    fn compare_with_what_was_told(&mut self) {
        let told = &self.tale.told;
        for (token, attempt) in &told.granted {
            let grant = self.grants.get(&revision_of(*token));
            if grant.is_none_or(|grant| grant.token != *token || grant.attempt != *attempt) {
                let details = format!("{attempt} was granted {token}");
                self.wrong(Wrong::Untrue, revision_of(*token), details);
            }
        }
        let ended = |token: &FencingToken| self.grants.get(&revision_of(*token))?.ended;
        let untrue: Vec<_> = (told.stood.iter())
            .filter(|(token, at)| ended(token).is_some_and(|ended| ended <= *at))
            .map(|(token, at)| (*at, format!("{token} stood")))
            .chain(
                (told.gone.iter())
                    .filter(|(token, at)| ended(token).is_none_or(|ended| ended > *at))
                    .map(|(token, at)| (*at, format!("{token} was gone"))),
            )
            .collect();
        for (revision, details) in untrue {
            self.wrong(Wrong::Untrue, revision, details);
        }
        for complaint in &told.complaints {
            self.wrong(Wrong::Complained, 0, complaint.clone());
        }
        for left in &self.tale.left {
            self.wrong(Wrong::Ghost, 0, left.clone());
        }
        if !self.tale.finished {
            self.wrong(Wrong::Stuck, 0, "the time was up");
        }
    }
}

fn revision_of(token: FencingToken) -> i64 {
    token.counter().cast_signed()
}

fn session_of(change: &Change) -> SessionId {
    let value: serde_json::Value = serde_json::from_slice(&change.kv.value).unwrap();
    value["session"].as_str().unwrap().parse().unwrap()
}

fn deletes_ticket(moment: &Moment, attempt: AttemptId) -> bool {
    let of_it = |change: &Change| matches!(change.of, Name::Ticket(_, other) if other == attempt);
    let mut changes = moment.changes.iter();
    changes.any(|change| of_it(change) && change.kind == EventKind::Delete)
}
