//! What callers saw, held against the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use etcd_kv::EventKind;
use etcd_mock::MockStore;
use fencelock::{Guard, Held, Lost};
use lock_fence::{FencingToken, Stale};

use crate::resource::Resource;
use crate::scene::KEYS;
use crate::tally::Tally;
use crate::witness::{Commit, Witness, encoded, faults_in, revision_of};

pub(crate) struct Ledger {
    witness: Witness,
    resources: BTreeMap<&'static str, Resource>,
    granted: Mutex<BTreeSet<(&'static str, FencingToken)>>,
    /// Guards of grants that stand, by the revision that names them.
    held: Mutex<BTreeMap<i64, (&'static str, Held)>>,
    /// Of each key the highest token that anybody was told of, floors included.
    known: Mutex<BTreeMap<&'static str, FencingToken>>,
    /// Grants that neither their holder nor their session ended, of which holders cannot know.
    ended_from_outside: Mutex<BTreeSet<(&'static str, FencingToken)>>,
    /// Beliefs that did not hold; each is excused if its grant was ended from outside.
    mistaken: Mutex<Vec<(&'static str, FencingToken, String)>>,
    breaches: Mutex<Vec<String>>,
    tally: Mutex<Tally>,
}

impl Ledger {
    pub(crate) fn new(server: MockStore) -> Self {
        Self {
            witness: Witness::new(server),
            resources: KEYS.map(|key| (key, Resource::default())).into(),
            granted: Mutex::default(),
            held: Mutex::default(),
            known: Mutex::default(),
            ended_from_outside: Mutex::default(),
            mistaken: Mutex::default(),
            breaches: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    pub(crate) fn witness(&self) -> &Witness {
        &self.witness
    }

    pub(crate) fn breaches(&self) -> Vec<String> {
        self.breaches.lock().unwrap().clone()
    }

    pub(crate) fn tally(&self) -> Tally {
        *self.tally.lock().unwrap()
    }

    pub(crate) fn breach(&self, what: String) {
        self.breaches.lock().unwrap().push(what);
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock().unwrap());
    }

    /// The highest token of the key that anybody was told of so far.
    pub(crate) fn highest_known(&self, key: &'static str) -> Option<FencingToken> {
        self.known.lock().unwrap().get(key).copied()
    }

    /// Tells of a token: no grant that is asked for later is at or below it.
    pub(crate) fn make_known(&self, key: &'static str, token: FencingToken) {
        let mut known = self.known.lock().unwrap();
        let highest = known.entry(key).or_insert(token);
        *highest = token.max(*highest);
    }

    /// A caller was given a guard; it had begun to ask when `floor` was known.
    pub(crate) fn granted(&self, key: &'static str, guard: &Guard, floor: Option<FencingToken>) {
        let token = guard.token();
        self.count(|tally| tally.granted += 1);
        self.make_known(key, token);
        if !self.granted.lock().unwrap().insert((key, token)) {
            self.breach(format!("{key}: token {token} was given twice"));
        }
        if floor >= Some(token) {
            self.breach(format!("{key}: token {token} after {floor:?} was known"));
        }
        if self.stands(key, token) {
            let held = (key, guard.held());
            self.held.lock().unwrap().insert(revision_of(token), held);
        }
    }

    /// The server has just ended the grant that this revision names.
    pub(crate) fn ended(&self, revision: i64) {
        let ended = self.held.lock().unwrap().remove(&revision);
        if let Some((key, held)) = ended
            && let Ok(token) = held.check()
        {
            self.mistaken(key, token, "has ended and is believed".into());
        }
    }

    /// A caller believes that it holds the lock.
    pub(crate) fn believed(&self, key: &'static str, token: FencingToken) {
        if !self.stands(key, token) {
            self.mistaken(key, token, "is believed and does not stand".into());
        }
    }

    fn stands(&self, key: &str, token: FencingToken) -> bool {
        self.witness.standing(key) == Some(token)
    }

    fn mistaken(&self, key: &'static str, token: FencingToken, how: String) {
        self.mistaken.lock().unwrap().push((key, token, how));
    }

    /// An operator ended a grant, or is about to.
    pub(crate) fn ended_from_outside(&self, key: &'static str, token: FencingToken) {
        self.ended_from_outside.lock().unwrap().insert((key, token));
    }

    /// A caller was told that it no longer holds the lock.
    pub(crate) fn lost(&self, key: &'static str, lost: &Lost) {
        self.count(|tally| tally.lost += 1);
        if lost.reason.is_definite() {
            self.count(|tally| tally.lost_definitely += 1);
            self.over(key, lost.token, "definitely lost");
        }
    }

    /// The grant is said to be over.
    pub(crate) fn over(&self, key: &'static str, token: FencingToken, how: &str) {
        if self.stands(key, token) {
            self.breach(format!("{key}: token {token} is {how} and stands"));
        }
    }

    /// A write at the very moment at which the lock was checked.
    pub(crate) fn write_checked(&self, key: &'static str, token: FencingToken) {
        if let Err(stale) = self.write(key, token) {
            self.mistaken(key, token, format!("is refused while held: {stale}"));
        }
    }

    /// A write some time after the check.
    pub(crate) fn write_late(&self, key: &'static str, token: FencingToken) {
        match self.write(key, token) {
            Ok(()) => {}
            Err(_) => self.count(|tally| tally.refused += 1),
        }
    }

    fn write(&self, key: &'static str, token: FencingToken) -> Result<(), Stale> {
        self.resources[key].write(token)?;
        self.count(|tally| tally.written += 1);
        Ok(())
    }

    /// The last checks, when nothing happens any more.
    pub(crate) fn judge(&self, commits: &[Commit], panics: u64) {
        for fault in faults_in(commits) {
            self.breach(fault);
        }
        let committed: BTreeSet<_> = commits
            .iter()
            .filter(|commit| commit.kind == EventKind::Put)
            .map(|commit| (commit.key.clone(), commit.kv.mod_revision))
            .collect();
        let count = u64::try_from(committed.len()).unwrap();
        self.count(|tally| tally.committed = count);
        for (key, token) in self.granted.lock().unwrap().iter() {
            if !committed.contains(&(encoded(key), revision_of(*token))) {
                self.breach(format!("{key}: token {token} was never committed"));
            }
        }
        let excused = self.ended_from_outside.lock().unwrap();
        for (key, token, how) in self.mistaken.lock().unwrap().iter() {
            if !excused.contains(&(*key, *token)) {
                self.breach(format!("{key}: token {token} {how}"));
            }
        }
        for (key, resource) in &self.resources {
            if !resource.accepted().is_sorted() {
                self.breach(format!("{key}: a stale write was accepted"));
            }
        }
        if panics > 0 {
            self.breach(format!("{panics} tasks panicked"));
        }
    }

    /// An attempt is granted at most once, unless its grant was ended from outside before the store
    /// could learn of it.
    pub(crate) fn judge_attempts(&self, commits: &[Commit]) {
        let ended = self.ended_from_outside.lock().unwrap();
        let ended: BTreeSet<_> = ended.iter().map(|(_, token)| revision_of(*token)).collect();
        let others = commits.iter().filter(|commit| {
            let granted = commit.kind == EventKind::Put;
            granted && !ended.contains(&commit.kv.mod_revision)
        });
        let mut seen = BTreeSet::new();
        for commit in others {
            let attempt = commit.attempt();
            if !seen.insert(attempt.clone()) {
                self.breach(format!("attempt {attempt} was granted twice: {commit:?}"));
            }
        }
    }
}
