//! INV-07: what is gone stays gone.

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Answer, Commit, Entry, What};

#[derive(Debug, Default)]
pub(super) struct GoneForGood;

impl Checker for GoneForGood {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        // What a backup brings back was not brought back by a request.
        if scene.truth.rewound {
            return;
        }
        match &entry.what {
            What::Committed(Commit::Granted { key, token, .. }) => {
                let past = scene.truth.key(key).and_then(|facts| facts.past.get(token));
                let Some(past) = past else { return };
                let sentence = format!(
                    "token {token} of {key:?} stands again, and had ended at {:.3} s",
                    past.at.as_secs_f64()
                );
                found.push(
                    Violation::new(Invariant::GoneForGood, entry.at, sentence)
                        .of_key(key)
                        .of_lane(&entry.lane)
                        .of_token(*token),
                );
            }
            What::Committed(
                Commit::SessionRenewed { session, .. } | Commit::SessionOpened { session, .. },
            ) => {
                let facts = scene.truth.sessions.get(session);
                let Some(ended) = facts.and_then(|facts| facts.ended) else {
                    return;
                };
                let sentence = format!(
                    "session {session} lives again, and had ended at {:.3} s",
                    ended.as_secs_f64()
                );
                found.push(
                    Violation::new(Invariant::GoneForGood, entry.at, sentence).of_lane(&entry.lane),
                );
            }
            What::Answered {
                call,
                answer: Answer::Renewed(_),
            } => {
                use crate::record::Asks;
                let open = scene.truth.calls.get(call);
                let Some((Asks::Renew { session }, since)) =
                    open.map(|open| (&open.asks, open.since))
                else {
                    return;
                };
                let facts = scene.truth.sessions.get(session);
                let ended = facts.and_then(|facts| facts.ended);
                if let Some(ended) = ended.filter(|ended| *ended < since) {
                    let sentence = format!(
                        "{} is told that session {session} is renewed, and it had ended at {:.3} s, before that was asked",
                        entry.lane,
                        ended.as_secs_f64()
                    );
                    found.push(
                        Violation::new(Invariant::GoneForGood, entry.at, sentence)
                            .of_lane(&entry.lane),
                    );
                }
            }
            _ => {}
        }
    }
}
