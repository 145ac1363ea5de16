//! INV-09: what was given up leaves nothing beyond the next confirmed renewal, and nothing at all
//! beyond its session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{FencingToken, SessionId};

use super::checker::{Checker, Scene};
use super::truth::Truth;
use super::{Invariant, Violation};
use crate::record::{Answer, Asks, CallId, Entry, Lane, Phase, What};

#[derive(Debug, Default)]
pub(super) struct NoGhost {
    /// Renewals that are under way, and what nobody accounted for when they began.
    renewals: BTreeMap<CallId, Vec<(Arc<str>, FencingToken)>>,
}

impl Checker for NoGhost {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        match &entry.what {
            What::Called {
                call,
                asks: Asks::Renew { session },
            } => {
                let ghosts = ghosts(scene.truth, &entry.lane, *session);
                if !ghosts.is_empty() {
                    self.renewals.insert(*call, ghosts);
                }
            }
            What::Answered { call, answer } => {
                let Some(ghosts) = self.renewals.remove(call) else {
                    return;
                };
                if !matches!(answer, Answer::Renewed(_)) || scene.truth.rewound {
                    return;
                }
                for (key, token) in ghosts {
                    found.extend(outlived(entry, scene, &key, token));
                }
            }
            What::PhaseBegan(Phase::End) => {
                for (key, facts) in &scene.truth.keys {
                    let grant = facts.standing.first();
                    if grant.is_none() && facts.queue.is_empty() {
                        continue;
                    }
                    let what = match grant {
                        Some(grant) => format!("token {} of", grant.token),
                        None => "a place for".to_owned(),
                    };
                    let sentence =
                        format!("{what} {key:?} stands when everybody has long gone home");
                    let violation =
                        Violation::new(Invariant::NoGhost, entry.at, sentence).of_key(key);
                    let tokens = grant.map(|grant| grant.token);
                    found.push(tokens.into_iter().fold(violation, Violation::of_token));
                }
            }
            _ => {}
        }
    }
}

/// Grants of a session that no caller was told of and no call can still be told of.
fn ghosts(truth: &Truth, lane: &Lane, session: SessionId) -> Vec<(Arc<str>, FencingToken)> {
    let mut ghosts = Vec::new();
    for (key, facts) in &truth.keys {
        for grant in facts
            .standing
            .iter()
            .filter(|grant| grant.session == session)
        {
            let told = facts.told.contains_key(&grant.token);
            if !told && !is_asked_for(truth, lane, key) {
                ghosts.push((Arc::clone(key), grant.token));
            }
        }
    }
    ghosts
}

/// Whether a call of the client may still be told of a grant of the key.
fn is_asked_for(truth: &Truth, lane: &Lane, key: &str) -> bool {
    truth.calls.values().any(|open| {
        let asks = &open.asks;
        open.lane == *lane && asks.wishes() && asks.key().is_some_and(|asked| **asked == *key)
    })
}

/// A ghost that a confirmed renewal did not end.
fn outlived(
    entry: &Entry,
    scene: &Scene<'_>,
    key: &Arc<str>,
    token: FencingToken,
) -> Option<Violation> {
    let facts = scene.truth.key(key)?;
    let grant = facts.stands(token)?;
    let again = is_asked_for(scene.truth, &entry.lane, key) || facts.told.contains_key(&token);
    let age = entry.at.saturating_sub(grant.since);
    (!again && age > Duration::ZERO).then(|| {
        let sentence = format!(
            "token {token} of {key:?} stands for nobody, {:.1} s after it was granted and after {} renewed its session",
            age.as_secs_f64(),
            entry.lane
        );
        Violation::new(Invariant::NoGhost, entry.at, sentence)
            .of_key(key)
            .of_lane(&entry.lane)
            .of_token(token)
    })
}
