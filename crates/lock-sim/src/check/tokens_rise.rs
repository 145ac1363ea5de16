//! INV-04: tokens of a key rise, above every floor; and a resource that checks them takes no older
//! one than it has seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use lock_spi::FencingToken;

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Answer, Commit, Entry, Lane, What};

#[derive(Debug, Default)]
pub(super) struct TokensRise {
    /// Of each resource, the highest token that it took.
    accepted: BTreeMap<Arc<str>, (FencingToken, Lane)>,
}

impl Checker for TokensRise {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        match &entry.what {
            What::Committed(Commit::Granted { key, token, .. }) if !scene.truth.rewound => {
                let highest = scene.truth.key(key).and_then(|facts| facts.highest);
                let sentence = match highest {
                    Some(highest) if *token <= highest => {
                        format!("{key:?} is granted with token {token} after token {highest}")
                    }
                    _ if token.term() < scene.truth.term => format!(
                        "{key:?} is granted with token {token} of a term below {}",
                        scene.truth.term
                    ),
                    _ => return,
                };
                let violation = Violation::new(Invariant::TokensRise, entry.at, sentence)
                    .of_key(key)
                    .of_lane(&entry.lane)
                    .of_token(*token);
                found.push(highest.into_iter().fold(violation, Violation::of_token));
            }
            What::Answered {
                call,
                answer: Answer::Granted(token),
            } => {
                let open = scene.truth.calls.get(call);
                let Some(open) = open.filter(|open| open.asks.wishes()) else {
                    return;
                };
                let Some(key) = open.asks.key() else { return };
                let facts = scene.truth.key(key);
                // A client that has seen nothing itself cannot know that the store went back.
                let known = match scene.truth.rewound {
                    true => facts.and_then(|facts| facts.told_to(&entry.lane)),
                    false => open.known,
                };
                if let Some(known) = known
                    && *token <= known
                {
                    let sentence = format!(
                        "{} is given token {token} of {key:?}, and token or floor {known} was known before it asked",
                        entry.lane
                    );
                    found.push(
                        Violation::new(Invariant::TokensRise, entry.at, sentence)
                            .of_key(key)
                            .of_lane(&entry.lane)
                            .of_token(*token)
                            .of_token(known),
                    );
                }
            }
            What::Wrote {
                resource,
                token: Some(token),
                accepted: true,
            } => {
                if let Some((highest, by)) = self.accepted.get(resource)
                    && token < highest
                {
                    let sentence = format!(
                        "{resource} takes a write with token {token} after one with token {highest}"
                    );
                    found.push(
                        Violation::new(Invariant::TokensRise, entry.at, sentence)
                            .of_lane(&entry.lane)
                            .of_lane(by)
                            .of_token(*token)
                            .of_token(*highest),
                    );
                    return;
                }
                self.accepted
                    .insert(Arc::clone(resource), (*token, entry.lane.clone()));
            }
            _ => {}
        }
    }
}
