//! What happened, for people: of a record, the entries that have to do with what went wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use lock_spi::{FencingToken, SessionId};

use crate::check::{Invariant, Violation};
use crate::record::{Answer, Asks, CallId, Commit, Entry, Lane, What};

/// A story is told in so many events, if it can be.
const SHORT: usize = 20;

/// The events that led to a violation, and the violation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Story {
    /// In the order of time.
    pub events: Vec<Entry>,
    /// What they led to.
    pub violation: Violation,
    /// Events of less weight that were left out.
    pub left_out: usize,
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        if self.left_out > 0 {
            writeln!(
                f,
                "{:>9}    ({} lesser events are left out)",
                "", self.left_out
            )?;
        }
        write!(f, "{}", self.violation)
    }
}

/// Tells what led to a violation.
///
/// Chosen are what happened to the grants, sessions and lanes that it is about, and the faults that
/// hit them; what repeats itself, such as renewals, is told once. When that is too much, the
/// entries of the least weight go, the oldest first.
#[must_use]
pub fn story(entries: &[Entry], violation: &Violation) -> Story {
    let cast = Cast::new(entries, violation);
    let weighed: Vec<_> = entries
        .iter()
        .take_while(|entry| entry.at <= violation.at)
        .filter_map(|entry| Some((cast.weight(entry)?, entry)))
        .collect();
    let mut told = without_repetition(&weighed);
    let before = told.len();
    while told.len() > SHORT {
        let least = told.iter().map(|(weight, _)| *weight).min();
        let Some(first) = told.iter().position(|(weight, _)| Some(*weight) == least) else {
            break;
        };
        told.remove(first);
    }
    Story {
        left_out: before - told.len(),
        events: told.into_iter().map(|(_, entry)| entry.clone()).collect(),
        violation: violation.clone(),
    }
}

/// Who and what a story is about.
struct Cast<'a> {
    violation: &'a Violation,
    sessions: BTreeSet<SessionId>,
    calls: BTreeMap<CallId, &'a Asks>,
    /// Calls that ended in something worth telling.
    notable: BTreeSet<CallId>,
}

impl<'a> Cast<'a> {
    fn new(entries: &'a [Entry], violation: &'a Violation) -> Self {
        let mut cast = Self {
            violation,
            sessions: BTreeSet::new(),
            calls: BTreeMap::new(),
            notable: BTreeSet::new(),
        };
        // A call that waits in the end is what somebody waits for.
        let mut unanswered = BTreeSet::new();
        for entry in entries {
            match &entry.what {
                What::Committed(Commit::Granted {
                    key,
                    token,
                    session,
                    ..
                }) if cast.is_about_grant(key, *token) => {
                    cast.sessions.insert(*session);
                }
                What::Called { call, asks } => {
                    cast.calls.insert(*call, asks);
                    if asks.wishes() && cast.is_about_lane(&entry.lane) {
                        unanswered.insert(*call);
                    }
                    if asks
                        .token()
                        .is_some_and(|token| violation.tokens.contains(&token))
                    {
                        cast.notable.insert(*call);
                    }
                }
                What::Answered { call, answer } => {
                    unanswered.remove(call);
                    if let Answer::Granted(token) = answer
                        && violation.tokens.contains(token)
                    {
                        cast.notable.insert(*call);
                    }
                }
                _ => {}
            }
        }
        cast.notable.extend(unanswered);
        cast
    }

    fn is_about_key(&self, key: &Arc<str>) -> bool {
        self.violation.key.as_ref().is_none_or(|own| own == key)
    }

    fn is_about_grant(&self, key: &Arc<str>, token: FencingToken) -> bool {
        self.is_about_key(key) && self.violation.tokens.contains(&token)
    }

    fn is_about_lane(&self, lane: &Lane) -> bool {
        self.violation
            .lanes
            .iter()
            .any(|own| own.is_same_place(lane))
    }

    /// How much an entry matters; none, when it has nothing to do with the story.
    fn weight(&self, entry: &Entry) -> Option<u8> {
        let own = self.is_about_lane(&entry.lane);
        match &entry.what {
            What::Committed(commit) => self.weight_of_commit(commit),
            What::Called { call, asks } => match asks {
                _ if self.notable.contains(call) => Some(4),
                Asks::Renew { session } => self.sessions.contains(session).then_some(1),
                _ => (own && asks.key().is_some_and(|key| self.is_about_key(key))).then_some(2),
            },
            What::Answered { call, answer } => {
                if self.notable.contains(call) {
                    return Some(4);
                }
                match self.calls.get(call)? {
                    Asks::Renew { session } => {
                        let usual = matches!(answer, Answer::Renewed(_));
                        let weight = if usual { 1 } else { 3 };
                        self.sessions.contains(session).then_some(weight)
                    }
                    asks => {
                        (own && asks.key().is_some_and(|key| self.is_about_key(key))).then_some(2)
                    }
                }
            }
            What::Believes { key, token } => self.is_about_grant(key, *token).then_some(3),
            What::Lost { key, token, .. } => self.is_about_grant(key, *token).then_some(5),
            What::Wrote { token, .. } => {
                let about = token.is_none_or(|token| self.violation.tokens.contains(&token));
                (about && own).then_some(3)
            }
            What::FaultBegan(_) | What::FaultEnded(_) | What::FaultHappened(_) => {
                let elsewhere = entry.lane.is_client() && !own && !self.violation.lanes.is_empty();
                (!elsewhere).then_some(3)
            }
            What::Crashed | What::Paused | What::Resumed | What::ClockChanged { .. } => {
                (own || self.violation.lanes.is_empty()).then_some(4)
            }
            What::Panicked => Some(5),
            What::Started | What::Note(_) => None,
            What::PhaseBegan(_) => Some(2),
        }
    }

    fn weight_of_commit(&self, commit: &Commit) -> Option<u8> {
        match commit {
            Commit::Granted { key, token, .. } | Commit::Ended { key, token, .. } => {
                if !self.is_about_key(key) {
                    return None;
                }
                if self.violation.tokens.contains(token) {
                    return Some(5);
                }
                // Others matter where it is about whose turn it was, or about no grant at all.
                let all = self.violation.tokens.is_empty();
                (all || self.violation.invariant == Invariant::Turns).then_some(1)
            }
            Commit::Rewritten { key, .. } => self.is_about_key(key).then_some(5),
            Commit::FloorRaised { key, .. } => self.is_about_key(key).then_some(3),
            Commit::Queued { key, .. } | Commit::Left { key, .. } => {
                self.is_about_key(key).then_some(2)
            }
            Commit::Recovered { .. } | Commit::Restored => Some(4),
            Commit::SessionEnded { session, .. } => self.sessions.contains(session).then_some(4),
            Commit::SessionOpened { session, .. } => self.sessions.contains(session).then_some(1),
            Commit::SessionRenewed { session, .. } => self.sessions.contains(session).then_some(1),
            Commit::SessionTaken { session } => self.sessions.contains(session).then_some(2),
        }
    }
}

/// Renewals that went as usual and beliefs that were held before are told the last time only.
fn without_repetition<'a>(weighed: &[(u8, &'a Entry)]) -> Vec<(u8, &'a Entry)> {
    let mut seen = BTreeSet::new();
    let mut told: Vec<_> = weighed
        .iter()
        .rev()
        .filter(|(weight, entry)| {
            let repeats = match &entry.what {
                What::Believes { token, .. } => Some(format!("believes {token}")),
                What::Wrote {
                    token, accepted, ..
                } => Some(format!("wrote {token:?} {accepted}")),
                What::Called {
                    asks: Asks::Renew { session },
                    ..
                } => Some(format!("renews {session}")),
                What::Committed(Commit::SessionRenewed { session, .. }) => {
                    Some(format!("renewed {session}"))
                }
                What::Answered {
                    answer: Answer::Renewed(_),
                    ..
                } if *weight == 1 => Some(format!("told {}", entry.lane)),
                _ => None,
            };
            repeats.is_none_or(|what| seen.insert((what, entry.lane.clone())))
        })
        .copied()
        .collect();
    told.reverse();
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::EndCause;
    use crate::sample::{Script, a, b};

    /// Many renewals and another client's business, then a false hold.
    fn long() -> Script {
        let mut script = Script::new();
        script.grant(b(), 3, 2).release(b(), 3).grant(a(), 5, 1);
        for _ in 0..30 {
            script
                .wait(3_000)
                .renew(a(), 1)
                .believes(a(), 5)
                .renew(b(), 2);
        }
        script.add(a(), What::Paused);
        script
            .wait(10_500)
            .ended(Lane::Server, 5, EndCause::Expired);
        script.session_ended(Lane::Server, 1, EndCause::Expired);
        script.add(a(), What::Resumed).believes(a(), 5);
        script
    }

    #[test]
    fn a_story_is_short_and_has_what_matters() {
        let script = long();
        let violations = script.violations();
        assert_eq!(violations[0].invariant, Invariant::NoFalseHold);
        let story = story(&script.entries, &violations[0]);
        let told = story.to_string();
        assert!(story.events.len() <= SHORT, "{told}");
        for needed in [
            "client a: acquires \"k\"",
            "call 3: granted with token 5",
            "client a: stands still",
            "grant 5 of \"k\" ends: its lease ran out",
            "client a: goes on",
            "client a: believes in token 5",
            "INV-10 at 101.",
        ] {
            assert!(told.contains(needed), "{needed}:\n{told}");
        }
        assert!(!told.contains("token 3"), "{told}");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut script = Script::new();
        script.grant(a(), 5, 1);
        for round in 0..40 {
            script.wait(10).queued(b(), 100 + round, 2);
            script.left(b(), 100 + round, EndCause::Deleted);
        }
        script.believes(b(), 5);
        let violations = script.violations();
        let story = story(&script.entries, &violations[0]);
        assert_eq!(story.events.len(), SHORT);
        assert!(story.left_out > 60, "{}", story.left_out);
        assert!(story.to_string().contains("lesser events are left out"));
    }
}
