//! The attempts of one session, as this store object knows them.
//!
//! Every insert of a session goes through the store object that opened it, so that what is not in
//! here was never asked for. What the database has of the session beyond what callers account for is
//! found here, and not there.

use std::collections::{BTreeMap, BTreeSet};

use lock_spi::{AttemptId, FencingToken, LockKey};

use crate::recent::Recent;

/// At least so many ended attempts of a session are remembered.
const ENDED_REMEMBERED: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Attempts {
    known: BTreeMap<AttemptId, Attempt>,
    grants: BTreeMap<FencingToken, AttemptId>,
    ended: Recent<AttemptId, ()>,
    /// Counts what attempts do, so that "before" and "since" are exact.
    activity: u64,
}

#[derive(Debug)]
struct Attempt {
    key: LockKey,
    in_flight: u32,
    last_active: u64,
    /// Requests that were sent and not answered: they may arrive yet.
    unanswered: u32,
    /// Nothing is sent for it any more.
    given_up: bool,
    facts: Facts,
}

/// What is known of an attempt.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Facts {
    pub(crate) grant: Option<FencingToken>,
    pub(crate) has_place: bool,
    /// Who held the key when the attempt was last refused.
    pub(crate) refused_by: Option<FencingToken>,
}

/// The attempt of a grant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Granted {
    pub(crate) key: LockKey,
    pub(crate) attempt: AttemptId,
    /// No request of it can arrive any more.
    pub(crate) settled: bool,
}

impl Attempt {
    /// Whether the database may have, or get, anything of it.
    fn may_stand(&self) -> bool {
        let Facts {
            grant, has_place, ..
        } = self.facts;
        self.in_flight > 0 || self.unanswered > 0 || grant.is_some() || has_place
    }
}

impl Attempts {
    pub(crate) const fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            grants: BTreeMap::new(),
            ended: Recent::new(ENDED_REMEMBERED),
            activity: 0,
        }
    }

    fn touch(&mut self) -> u64 {
        self.activity += 1;
        self.activity
    }

    /// The present moment in the count of activities.
    pub(crate) const fn now(&self) -> u64 {
        self.activity
    }

    /// Registers that an attempt begins to do something; `false` when it has ended.
    pub(crate) fn begin(&mut self, attempt: AttemptId, key: &LockKey) -> bool {
        if self.has_ended(attempt) {
            return false;
        }
        let now = self.touch();
        let entry = self.known.entry(attempt).or_insert_with(|| Attempt {
            key: key.clone(),
            in_flight: 0,
            last_active: now,
            unanswered: 0,
            given_up: false,
            facts: Facts::default(),
        });
        entry.in_flight += 1;
        entry.last_active = now;
        true
    }

    /// The counterpart of [`Attempts::begin`].
    pub(crate) fn leave(&mut self, attempt: AttemptId) {
        let now = self.touch();
        if let Some(entry) = self.known.get_mut(&attempt) {
            entry.in_flight = entry.in_flight.saturating_sub(1);
            entry.last_active = now;
        }
    }

    /// Registers that a request leaves; `false` when the attempt has ended, and then it must not.
    pub(crate) fn send(&mut self, attempt: AttemptId) -> bool {
        match self.known.get_mut(&attempt) {
            Some(entry) if !entry.given_up => {
                entry.unanswered += 1;
                true
            }
            _ => false,
        }
    }

    /// A request was answered, and no copy of it is on its way.
    pub(crate) fn answered(&mut self, attempt: AttemptId) {
        if let Some(entry) = self.known.get_mut(&attempt) {
            entry.unanswered = entry.unanswered.saturating_sub(1);
        }
    }

    pub(crate) fn facts(&self, attempt: AttemptId) -> Facts {
        let entry = self.known.get(&attempt);
        entry.map(|entry| entry.facts).unwrap_or_default()
    }

    /// Notes that an attempt was refused, with or without a place.
    pub(crate) fn refused(
        &mut self,
        attempt: AttemptId,
        has_place: bool,
        by: Option<FencingToken>,
    ) {
        if let Some(entry) = self.known.get_mut(&attempt) {
            entry.facts.has_place = has_place;
            entry.facts.refused_by = by;
        }
    }

    /// Notes a grant; `false` when the attempt has ended meanwhile.
    pub(crate) fn granted(&mut self, attempt: AttemptId, token: FencingToken) -> bool {
        let Some(entry) = self.known.get_mut(&attempt) else {
            return false;
        };
        entry.facts.grant = Some(token);
        entry.facts.has_place = false;
        self.grants.insert(token, attempt);
        !entry.given_up
    }

    pub(crate) fn grant(&self, token: FencingToken) -> Option<Granted> {
        let attempt = *self.grants.get(&token)?;
        let entry = self.known.get(&attempt)?;
        Some(Granted {
            key: entry.key.clone(),
            attempt,
            settled: entry.unanswered == 0,
        })
    }

    pub(crate) fn tokens(&self) -> Vec<FencingToken> {
        self.grants.keys().copied().collect()
    }

    /// From now on nothing is sent for the attempt, unless it is of another key.
    pub(crate) fn give_up(&mut self, attempt: AttemptId, key: &LockKey) {
        match self.known.get_mut(&attempt) {
            Some(entry) if entry.key == *key => entry.given_up = true,
            Some(_) => {}
            None => self.ended.remember(attempt, ()),
        }
    }

    /// The database has nothing of the attempt any more and will have nothing, if it is of this
    /// key. Answers with the token that it held.
    pub(crate) fn end(&mut self, attempt: AttemptId, key: &LockKey) -> Option<FencingToken> {
        if self
            .known
            .get(&attempt)
            .is_some_and(|entry| entry.key != *key)
        {
            return None;
        }
        self.ended.remember(attempt, ());
        let token = self.known.remove(&attempt)?.facts.grant?;
        self.grants.remove(&token);
        Some(token)
    }

    pub(crate) fn has_ended(&self, attempt: AttemptId) -> bool {
        self.ended.contains(&attempt)
            || self.known.get(&attempt).is_some_and(|entry| entry.given_up)
    }

    /// Gives up what nobody accounts for: what is not listed and was not at work at any time since.
    /// Answers with those of which the database may have anything; the others are forgotten.
    pub(crate) fn give_up_surplus(
        &mut self,
        listed: &BTreeSet<AttemptId>,
        grants: &BTreeSet<FencingToken>,
        since: u64,
    ) -> Vec<(LockKey, AttemptId)> {
        let surplus: Vec<_> = self
            .known
            .iter()
            .filter(|(attempt, entry)| {
                let holds_listed = entry
                    .facts
                    .grant
                    .is_some_and(|token| grants.contains(&token));
                let at_work = entry.in_flight > 0 || entry.last_active > since;
                !listed.contains(attempt) && !holds_listed && !at_work
            })
            .map(|(attempt, entry)| (entry.key.clone(), *attempt, entry.may_stand()))
            .collect();
        let mut standing = Vec::new();
        for (key, attempt, may_stand) in surplus {
            if may_stand {
                self.give_up(attempt, &key);
                standing.push((key, attempt));
            } else {
                self.known.remove(&attempt);
            }
        }
        standing
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

    /// What is surplus when everything before this moment counts.
    fn surplus_now(attempts: &mut Attempts) -> Vec<AttemptId> {
        let now = attempts.now();
        surplus(attempts, &[], now)
    }

    fn surplus(attempts: &mut Attempts, listed: &[AttemptId], since: u64) -> Vec<AttemptId> {
        let listed = listed.iter().copied().collect();
        let found = attempts.give_up_surplus(&listed, &BTreeSet::new(), since);
        found.into_iter().map(|(_, attempt)| attempt).collect()
    }

    #[test]
    fn an_ended_attempt_begins_nothing_and_is_granted_nothing() {
        let mut attempts = Attempts::new();
        assert!(attempts.begin(A, &key()) && attempts.send(A));
        assert!(attempts.granted(A, token(5)));
        assert_eq!(attempts.end(A, &key()), Some(token(5)));
        assert!(!attempts.begin(A, &key()) && !attempts.send(A));
        assert!(!attempts.granted(A, token(6)));
        assert_eq!(attempts.grant(token(5)), None);
        attempts.leave(A);
    }

    #[test]
    fn what_was_given_up_sends_nothing_and_is_not_forgotten() {
        let mut attempts = Attempts::new();
        assert!(attempts.begin(A, &key()) && attempts.send(A));
        attempts.give_up(A, &key());
        attempts.leave(A);
        assert!(attempts.has_ended(A) && !attempts.send(A));
        assert!(!attempts.granted(A, token(5)), "it came too late");
        assert_eq!(surplus_now(&mut attempts), [A]);
        assert_eq!(surplus_now(&mut attempts), [A], "until it is done");
        attempts.end(A, &key());
        assert!(surplus_now(&mut attempts).is_empty());
    }

    #[test]
    fn another_key_ends_nothing() {
        let mut attempts = Attempts::new();
        let other = LockKey::new("other").unwrap();
        assert!(attempts.begin(A, &key()) && attempts.granted(A, token(5)));
        attempts.give_up(A, &other);
        assert_eq!(attempts.end(A, &other), None);
        assert!(!attempts.has_ended(A));
    }

    #[test]
    fn who_was_at_work_at_any_time_since_is_no_surplus() {
        let mut attempts = Attempts::new();
        assert!(attempts.begin(A, &key()) && attempts.send(A));
        let since = attempts.now();
        assert!(surplus(&mut attempts, &[], since).is_empty(), "in flight");
        attempts.leave(A);
        assert!(surplus(&mut attempts, &[], since).is_empty(), "back since");
        let since = attempts.now();
        assert!(surplus(&mut attempts, &[A], since).is_empty(), "listed");
        assert_eq!(surplus(&mut attempts, &[], since), [A], "idle since");
    }

    #[test]
    fn what_was_refused_without_a_place_leaves_nothing() {
        let mut attempts = Attempts::new();
        for attempt in [A, B] {
            assert!(attempts.begin(attempt, &key()) && attempts.send(attempt));
            attempts.answered(attempt);
            attempts.refused(attempt, attempt == B, Some(token(5)));
            attempts.leave(attempt);
        }
        assert_eq!(attempts.facts(A).refused_by, Some(token(5)));
        assert_eq!(surplus_now(&mut attempts), [B]);
        assert!(!attempts.has_ended(A) && attempts.has_ended(B));
    }

    #[test]
    fn a_grant_is_settled_once_every_request_was_answered() {
        let mut attempts = Attempts::new();
        assert!(attempts.begin(A, &key()));
        assert!(attempts.send(A) && attempts.send(A));
        attempts.answered(A);
        attempts.granted(A, token(5));
        assert!(!attempts.grant(token(5)).unwrap().settled);
        attempts.answered(A);
        assert!(attempts.grant(token(5)).unwrap().settled);
        assert_eq!(attempts.tokens(), [token(5)]);
    }
}
