//! INV-06: what ends something ends what it names, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use lock_spi::FencingToken;

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Answer, Asks, Commit, EndCause, Entry, Lane, What};

#[derive(Debug, Default)]
pub(super) struct ExactEnd {
    released: BTreeSet<(Arc<str>, FencingToken)>,
}

impl Checker for ExactEnd {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        match &entry.what {
            What::Committed(Commit::Ended {
                key,
                token,
                cause: EndCause::Deleted,
            }) => {
                let sentence = wrongly_ended(entry, scene, key, *token);
                let holder = holder(scene, key, *token);
                found.extend(sentence.map(|sentence| {
                    let violation = about(entry, key, *token, sentence);
                    holder
                        .into_iter()
                        .fold(violation, |violation, lane| violation.of_lane(&lane))
                }));
            }
            What::Committed(Commit::SessionEnded { session, cause }) => {
                let Some(facts) = scene.truth.sessions.get(session) else {
                    return;
                };
                let keeper = facts.keepers.last();
                let early = *cause == EndCause::Expired && entry.at < facts.until;
                let foreign = *cause == EndCause::LeaseRevoked
                    && entry.lane != Lane::Operator
                    && !facts.keepers.contains(&entry.lane);
                if early || foreign {
                    let whose = keeper.map_or_else(String::new, |lane| format!(" of {lane}"));
                    let sentence = format!(
                        "session {session}{whose} is ended by {}, and had until {:.3} s",
                        entry.lane,
                        facts.until.as_secs_f64()
                    );
                    let violation = Violation::new(Invariant::ExactEnd, entry.at, sentence);
                    found.push(keeper.into_iter().fold(violation, Violation::of_lane));
                }
            }
            What::Answered {
                call,
                answer: Answer::Released,
            } => {
                let open = scene.truth.calls.get(call);
                let Some(Asks::Release { key, token }) = open.map(|open| &open.asks) else {
                    return;
                };
                let stands = scene.truth.key(key).and_then(|facts| facts.stands(*token));
                // A backup may bring back what was released.
                if stands.is_some() && !scene.truth.rewound {
                    let sentence =
                        format!("token {token} of {key:?} is called released, and stands");
                    found.push(about(entry, key, *token, sentence));
                }
                if !self.released.insert((Arc::clone(key), *token)) {
                    let sentence = format!("token {token} of {key:?} is released a second time");
                    found.push(about(entry, key, *token, sentence));
                }
            }
            _ => {}
        }
    }
}

fn about(entry: &Entry, key: &Arc<str>, token: FencingToken, sentence: String) -> Violation {
    Violation::new(Invariant::ExactEnd, entry.at, sentence)
        .of_key(key)
        .of_lane(&entry.lane)
        .of_token(token)
}

/// Who was told of the grant, and has it for all that it knows.
fn holder(scene: &Scene<'_>, key: &str, token: FencingToken) -> Option<Lane> {
    let told = scene.truth.key(key)?.told.get(&token)?;
    told.open.then(|| told.lane.clone())
}

/// A client that deletes a lock deletes its own, and not one that its caller holds.
fn wrongly_ended(
    entry: &Entry,
    scene: &Scene<'_>,
    key: &Arc<str>,
    token: FencingToken,
) -> Option<String> {
    if !entry.lane.is_client() || scene.truth.rewound {
        return None;
    }
    let grant = scene.truth.key(key)?.stands(token)?;
    if !scene.truth.keeps(&entry.lane, grant.session) {
        return Some(format!(
            "{} ends token {token} of {key:?}, which is not its own",
            entry.lane
        ));
    }
    holder(scene, key, token).map(|holder| {
        format!(
            "{} ends token {token} of {key:?}, which {holder} holds",
            entry.lane
        )
    })
}
