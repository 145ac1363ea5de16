//! INV-01: one grant of a key, and nobody is told of a grant that is not his alone.

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Answer, Commit, Entry, What};

#[derive(Debug, Default)]
pub(super) struct OneGrant;

impl Checker for OneGrant {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        match &entry.what {
            What::Committed(Commit::Granted { key, token, .. }) => {
                let facts = scene.truth.key(key);
                let Some(other) = facts.and_then(|facts| facts.standing.first()) else {
                    return;
                };
                let sentence = format!(
                    "{key:?} is granted with token {token} while token {} stands",
                    other.token
                );
                found.push(
                    Violation::new(Invariant::OneGrant, entry.at, sentence)
                        .of_key(key)
                        .of_lane(&entry.lane)
                        .of_token(other.token)
                        .of_token(*token),
                );
            }
            What::Answered {
                call,
                answer: Answer::Granted(token),
            } => {
                let Some(key) = scene
                    .truth
                    .calls
                    .get(call)
                    .filter(|open| open.asks.wishes())
                    .and_then(|open| open.asks.key())
                else {
                    return;
                };
                let facts = scene.truth.key(key);
                let told = facts.and_then(|facts| facts.told.get(token));
                let made = facts.is_some_and(|facts| {
                    facts.stands(*token).is_some() || facts.past.contains_key(token)
                });
                let sentence = match (told, made) {
                    // A backup does not know what was handed out after it was made; until somebody
                    // recovers, nobody else may know either.
                    (Some(_), true) if scene.truth.rewound => return,
                    (Some(told), _) => {
                        format!(
                            "token {token} of {key:?} is given out a second time, after {}",
                            told.lane
                        )
                    }
                    (None, false) => {
                        format!(
                            "{} is told of token {token} of {key:?}, which was never committed",
                            entry.lane
                        )
                    }
                    (None, true) => return,
                };
                let mut violation = Violation::new(Invariant::OneGrant, entry.at, sentence)
                    .of_key(key)
                    .of_lane(&entry.lane)
                    .of_token(*token);
                if let Some(told) = told {
                    violation = violation.of_lane(&told.lane);
                }
                found.push(violation);
            }
            _ => {}
        }
    }
}
