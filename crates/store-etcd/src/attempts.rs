//! The attempts of one session, as this store object knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lock_spi::{AttemptId, FencingToken, Instant, LockKey};
use tokio::sync::Mutex;

use crate::ops::Ticket;
use crate::recent::Recent;

/// At least so many ended attempts of a session are remembered.
const ENDED_REMEMBERED: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Attempts {
    known: BTreeMap<AttemptId, Attempt>,
    grants: BTreeMap<FencingToken, Granted>,
    ended: Recent<AttemptId, ()>,
    /// Those that have ended and whose grants are on their way back, and by how many calls.
    releasing: BTreeMap<AttemptId, u32>,
    /// Counts what attempts do, so that "before" and "since" are exact.
    activity: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Granted {
    pub(crate) key: LockKey,
    pub(crate) attempt: AttemptId,
}

#[derive(Debug)]
struct Attempt {
    key: LockKey,
    in_flight: u32,
    last_active: u64,
    turn: Arc<Mutex<()>>,
    facts: Facts,
    stall: Option<Stall>,
}

/// What is known of an attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) grant: Option<FencingToken>,
    /// The create revision of its ticket.
    pub(crate) place: Option<i64>,
    pub(crate) in_line: InLine,
    /// Who held the key when the attempt was last refused.
    pub(crate) refused_by: Option<FencingToken>,
    /// A creating request was lost; before the first of them this revision had been seen.
    pub(crate) lost_after: Option<i64>,
}

/// Where an attempt with a place stands, as it was last seen.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum InLine {
    #[default]
    Unknown,
    /// Right behind this ticket.
    Behind(Bytes),
    /// Nobody is before it, and nobody will be.
    First,
    /// And the lock was free.
    Turn,
}

/// Places ahead that do not take their turn although the key is free.
#[derive(Clone, Debug)]
struct Stall {
    ahead: Vec<Ticket>,
    since: Instant,
}

impl Attempts {
    pub(crate) const fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            grants: BTreeMap::new(),
            ended: Recent::new(ENDED_REMEMBERED),
            releasing: BTreeMap::new(),
            activity: 0,
        }
    }

    fn touch(&mut self) -> u64 {
        self.activity += 1;
        self.activity
    }

    /// Registers that an attempt begins to do something; `None` when it has ended. One thing at a
    /// time: whoever goes on holds the lock in the answer.
    pub(crate) fn begin(&mut self, attempt: AttemptId, key: &LockKey) -> Option<Arc<Mutex<()>>> {
        if self.ended.contains(&attempt) {
            return None;
        }
        let now = self.touch();
        let entry = self.known.entry(attempt).or_insert_with(|| Attempt {
            key: key.clone(),
            in_flight: 0,
            last_active: now,
            turn: Arc::default(),
            facts: Facts::default(),
            stall: None,
        });
        entry.in_flight += 1;
        entry.last_active = now;
        Some(Arc::clone(&entry.turn))
    }

    /// The counterpart of [`Attempts::begin`].
    pub(crate) fn leave(&mut self, attempt: AttemptId) {
        let now = self.touch();
        if let Some(entry) = self.known.get_mut(&attempt) {
            entry.in_flight = entry.in_flight.saturating_sub(1);
            entry.last_active = now;
        }
    }

    pub(crate) fn facts(&self, attempt: AttemptId) -> Facts {
        let entry = self.known.get(&attempt);
        entry.map(|entry| entry.facts.clone()).unwrap_or_default()
    }

    /// Notes something about an attempt that has not ended.
    pub(crate) fn note(&mut self, attempt: AttemptId, change: impl FnOnce(&mut Facts)) {
        if let Some(entry) = self.known.get_mut(&attempt) {
            change(&mut entry.facts);
        }
    }

    /// Notes a grant; `false` when the attempt has ended meanwhile.
    pub(crate) fn granted(&mut self, attempt: AttemptId, token: FencingToken) -> bool {
        let Some(entry) = self.known.get_mut(&attempt) else {
            return false;
        };
        entry.facts.grant = Some(token);
        entry.facts.place = None;
        let key = entry.key.clone();
        self.grants.insert(token, Granted { key, attempt });
        true
    }

    /// Ends an attempt for good; answers with the token that it held.
    pub(crate) fn end(&mut self, attempt: AttemptId) -> Option<FencingToken> {
        self.ended.remember(attempt, ());
        let token = self.known.remove(&attempt)?.facts.grant?;
        self.grants.remove(&token);
        Some(token)
    }

    /// Registers that the grant of an attempt is being released: whoever does it accounts for it.
    pub(crate) fn begin_release(&mut self, attempt: AttemptId) {
        *self.releasing.entry(attempt).or_default() += 1;
    }

    /// The counterpart of [`Attempts::begin_release`].
    pub(crate) fn leave_release(&mut self, attempt: AttemptId) {
        if let Some(calls) = self.releasing.get_mut(&attempt) {
            *calls -= 1;
            if *calls == 0 {
                self.releasing.remove(&attempt);
            }
        }
    }

    pub(crate) fn has_ended(&self, attempt: AttemptId) -> bool {
        self.ended.contains(&attempt)
    }

    pub(crate) fn grant(&self, token: FencingToken) -> Option<&Granted> {
        self.grants.get(&token)
    }

    pub(crate) fn tokens(&self) -> Vec<FencingToken> {
        self.grants.keys().copied().collect()
    }

    /// The present moment in the count of activities.
    pub(crate) const fn now(&self) -> u64 {
        self.activity
    }

    /// Whether somebody accounts for this attempt: it is listed, or was at work at any time since, or
    /// its grant is being released.
    pub(crate) fn is_known(
        &self,
        attempt: AttemptId,
        listed: &BTreeSet<AttemptId>,
        since: u64,
    ) -> bool {
        let at_work = |entry: &Attempt| entry.in_flight > 0 || entry.last_active > since;
        let stands = listed.contains(&attempt) || self.known.get(&attempt).is_some_and(at_work);
        self.releasing.contains_key(&attempt) || (stands && !self.has_ended(attempt))
    }

    /// The keys of which more than one attempt is known.
    pub(crate) fn crowded_keys(&self) -> BTreeSet<LockKey> {
        let mut seen = BTreeSet::new();
        let keys = self.known.values().map(|entry| &entry.key);
        keys.filter(|key| !seen.insert(*key)).cloned().collect()
    }

    /// The grants that are known, by key: the newest of each.
    pub(crate) fn grants_by_key(&self) -> BTreeMap<LockKey, (FencingToken, AttemptId)> {
        let grants = self.grants.iter();
        grants
            .map(|(token, granted)| (granted.key.clone(), (*token, granted.attempt)))
            .collect()
    }

    /// Forgets attempts that nobody accounts for and that left nothing.
    pub(crate) fn forget_idle(&mut self, listed: &BTreeSet<AttemptId>, since: u64) {
        self.known.retain(|attempt, entry| {
            listed.contains(attempt)
                || entry.in_flight > 0
                || entry.last_active > since
                || entry.facts.grant.is_some()
        });
    }

    /// Whether the places ahead have had their time: the key was free and they the same in two
    /// reads, each place's share apart, from the answer of the one to the sending of the other.
    pub(crate) fn may_skip(
        &mut self,
        attempt: AttemptId,
        ahead: &[Ticket],
        (sent, answered): (Instant, Instant),
        share: Duration,
    ) -> bool {
        let Some(entry) = self.known.get_mut(&attempt) else {
            return false;
        };
        let places = u32::try_from(ahead.len()).unwrap_or(u32::MAX);
        match &entry.stall {
            Some(stall) if stall.ahead == ahead => {
                sent.saturating_since(stall.since) >= share.saturating_mul(places)
            }
            _ => {
                entry.stall = Some(Stall {
                    ahead: ahead.to_vec(),
                    since: answered,
                });
                false
            }
        }
    }

    /// The key is held, or the attempt is first: nobody ahead is late.
    pub(crate) fn not_stalled(&mut self, attempt: AttemptId) {
        if let Some(entry) = self.known.get_mut(&attempt) {
            entry.stall = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: AttemptId = AttemptId::from_u128(1);
    const B: AttemptId = AttemptId::from_u128(2);

    fn key() -> LockKey {
        LockKey::new("k").unwrap()
    }

    fn token(value: u64) -> FencingToken {
        FencingToken::new(value).unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn an_ended_attempt_begins_nothing_and_is_granted_nothing() {
        let mut attempts = Attempts::new();
        assert!(attempts.begin(A, &key()).is_some());
        assert!(attempts.granted(A, token(5)));
        assert_eq!(attempts.end(A), Some(token(5)));
        assert!(attempts.begin(A, &key()).is_none());
        assert!(!attempts.granted(A, token(6)));
        assert!(attempts.grant(token(5)).is_none());
        attempts.leave(A);
    }

    #[test]
    fn whose_grant_is_being_released_is_known_until_that_is_done() {
        let mut attempts = Attempts::new();
        let nobody = BTreeSet::new();
        attempts.begin(A, &key()).unwrap();
        attempts.granted(A, token(5));
        attempts.begin_release(A);
        attempts.begin_release(A);
        attempts.end(A);
        attempts.leave_release(A);
        assert!(attempts.has_ended(A) && attempts.is_known(A, &nobody, attempts.now()));
        attempts.leave_release(A);
        assert!(!attempts.is_known(A, &nobody, 0));
    }

    #[test]
    fn who_was_at_work_at_any_time_since_is_known() {
        let mut attempts = Attempts::new();
        let nobody = BTreeSet::new();
        attempts.begin(A, &key()).unwrap();
        let since = attempts.now();
        assert!(attempts.is_known(A, &nobody, since), "in flight");
        attempts.leave(A);
        assert!(attempts.is_known(A, &nobody, since), "returned since");
        let since = attempts.now();
        assert!(!attempts.is_known(A, &nobody, since), "idle since");
        assert!(attempts.is_known(A, &[A].into(), since), "listed");
        attempts.end(A);
        assert!(!attempts.is_known(A, &[A].into(), since), "ended");
    }

    #[test]
    fn a_key_with_two_attempts_is_crowded() {
        let mut attempts = Attempts::new();
        attempts.begin(A, &key()).unwrap();
        assert!(attempts.crowded_keys().is_empty());
        attempts.begin(B, &key()).unwrap();
        assert_eq!(attempts.crowded_keys(), [key()].into());
    }

    #[test]
    fn idle_attempts_are_forgotten_and_grants_are_not() {
        let mut attempts = Attempts::new();
        for attempt in [A, B] {
            attempts.begin(attempt, &key()).unwrap();
            attempts.leave(attempt);
        }
        attempts.granted(A, token(5));
        attempts.forget_idle(&BTreeSet::new(), attempts.now());
        assert_eq!(attempts.facts(A).grant, Some(token(5)));
        assert!(!attempts.known.contains_key(&B));
    }

    #[test]
    fn each_place_ahead_has_its_share_of_time() {
        let mut attempts = Attempts::new();
        attempts.begin(A, &key()).unwrap();
        let ticket = |place| Ticket {
            stored: format!("t{place}").into(),
            place,
        };
        let (one, two) = (vec![ticket(3)], vec![ticket(3), ticket(4)]);
        let share = Duration::from_secs(12);
        let mut look = |ahead: &[Ticket], second| {
            attempts.may_skip(A, ahead, (at(second), at(second + 1)), share)
        };
        assert!(!look(&two, 0));
        assert!(
            !look(&two, 24),
            "25 s after the answer at 1 s is the first moment"
        );
        assert!(look(&two, 25));
        assert!(!look(&one, 26), "others ahead: the count begins anew");
        assert!(!look(&one, 38));
        assert!(look(&one, 39));
        attempts.not_stalled(A);
        assert!(!attempts.may_skip(A, &one, (at(60), at(60)), share));
    }
}
