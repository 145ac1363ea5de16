//! INV-02: grants and places end with their session.

use std::time::Duration;

use lock_spi::SessionId;

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Commit, Entry, What};

#[derive(Debug, Default)]
pub(super) struct Cascade {
    /// Sessions that ended at this very moment: what they had ends in the same one.
    ending: Vec<(Duration, SessionId)>,
}

impl Checker for Cascade {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        self.judge(entry.at, scene, found);
        match &entry.what {
            What::Committed(Commit::SessionEnded { session, .. }) => {
                self.ending.push((entry.at, *session));
            }
            What::Committed(Commit::Granted {
                key,
                session,
                token,
                ..
            }) => {
                if let Some(ended) = ended(scene, *session) {
                    let sentence = format!(
                        "{key:?} is granted with token {token} to session {session}, which ended at {:.3} s",
                        ended.as_secs_f64()
                    );
                    found.push(
                        Violation::new(Invariant::Cascade, entry.at, sentence)
                            .of_key(key)
                            .of_lane(&entry.lane)
                            .of_token(*token),
                    );
                }
            }
            What::Committed(Commit::Queued { key, session, .. }) => {
                if let Some(ended) = ended(scene, *session) {
                    let sentence = format!(
                        "session {session} takes a place for {key:?}, and ended at {:.3} s",
                        ended.as_secs_f64()
                    );
                    found.push(
                        Violation::new(Invariant::Cascade, entry.at, sentence)
                            .of_key(key)
                            .of_lane(&entry.lane),
                    );
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _at: Duration, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        self.judge(Duration::MAX, scene, found);
    }
}

impl Cascade {
    fn judge(&mut self, now: Duration, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        if self.ending.first().is_none_or(|(at, _)| *at >= now) {
            return;
        }
        for (at, session) in std::mem::take(&mut self.ending) {
            for (key, facts) in &scene.truth.keys {
                if let Some(grant) = facts.standing.iter().find(|grant| grant.session == session) {
                    let sentence = format!(
                        "session {session} has ended, and its grant {} of {key:?} stands",
                        grant.token
                    );
                    found.push(
                        Violation::new(Invariant::Cascade, at, sentence)
                            .of_key(key)
                            .of_token(grant.token),
                    );
                }
                if facts.queue.iter().any(|place| place.session == session) {
                    let sentence =
                        format!("session {session} has ended, and its place for {key:?} stands");
                    found.push(Violation::new(Invariant::Cascade, at, sentence).of_key(key));
                }
            }
        }
    }
}

fn ended(scene: &Scene<'_>, session: SessionId) -> Option<Duration> {
    if scene.truth.rewound {
        return None;
    }
    scene.truth.sessions.get(&session)?.ended
}
