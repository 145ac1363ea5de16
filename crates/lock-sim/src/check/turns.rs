//! INV-08: whoever waits is granted in time, and in the order of the places.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{AttemptId, FencingToken};

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Answer, Asks, CallId, Commit, EndCause, Entry, Lane, Phase, What};

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// A grant that was just made. The places that its transaction took away are told after it.
    granted: Option<Granted>,
    /// Those who have waited for too long, and were told of.
    late: BTreeSet<CallId>,
}

#[derive(Debug)]
struct Granted {
    at: Duration,
    lane: Lane,
    key: Arc<str>,
    token: FencingToken,
    ahead: Vec<AttemptId>,
}

impl Checker for Turns {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        self.settle(entry, scene, found);
        if let What::Committed(Commit::Granted {
            key,
            token,
            attempt,
            ..
        }) = &entry.what
            && let Some(facts) = scene.truth.key(key)
            // What a backup brings back takes nobody's turn.
            && !scene.truth.rewound
        {
            let others = facts.queue.iter().map(|place| place.attempt);
            self.granted = Some(Granted {
                at: entry.at,
                lane: entry.lane.clone(),
                key: Arc::clone(key),
                token: *token,
                ahead: others.take_while(|other| other != attempt).collect(),
            });
        }
        found.extend(answered_in_vain(entry, scene));
        self.look_for_late(entry.at, scene, found);
    }

    fn finish(&mut self, at: Duration, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        found.extend(self.granted.take().and_then(passed));
        self.look_for_late(at, scene, found);
    }
}

impl Turns {
    /// Judges the grant that was just made, once its transaction is over.
    fn settle(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        if let What::Committed(Commit::Left {
            key,
            attempt,
            cause,
        }) = &entry.what
        {
            found.extend(pushed_out(entry, scene, key, *attempt, *cause));
            if let Some(granted) = &mut self.granted
                && granted.key == *key
                && granted.at == entry.at
            {
                granted.ahead.retain(|ahead| ahead != attempt);
                return;
            }
        }
        found.extend(self.granted.take().and_then(passed));
    }

    fn look_for_late(&mut self, now: Duration, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        let truth = scene.truth;
        if truth.phase != Some(Phase::Liveness) {
            return;
        }
        for (call, open) in &truth.calls {
            let Asks::Acquire { key } = &open.asks else {
                continue;
            };
            let bound = scene.bounds.hand_over;
            let since = open.since.max(truth.phase_since);
            if now > since + bound && self.late.insert(*call) {
                let sentence = format!(
                    "{} waits for {key:?} since {:.3} s, longer than {:.1} s after faults were healed",
                    open.lane,
                    open.since.as_secs_f64(),
                    bound.as_secs_f64()
                );
                found.push(
                    Violation::new(Invariant::Turns, now, sentence)
                        .of_key(key)
                        .of_lane(&open.lane),
                );
            }
        }
    }
}

fn passed(granted: Granted) -> Option<Violation> {
    let Granted {
        at,
        lane,
        key,
        token,
        ahead,
    } = granted;
    (!ahead.is_empty()).then(|| {
        let sentence = format!(
            "{lane} is granted {key:?} with token {token} although {} waited before it",
            ahead.len()
        );
        Violation::new(Invariant::Turns, at, sentence)
            .of_key(&key)
            .of_lane(&lane)
            .of_token(token)
    })
}

/// A place that another client took away, though whoever had it was not late.
fn pushed_out(
    entry: &Entry,
    scene: &Scene<'_>,
    key: &Arc<str>,
    attempt: AttemptId,
    cause: EndCause,
) -> Option<Violation> {
    if cause != EndCause::Deleted || !entry.lane.is_client() {
        return None;
    }
    let facts = scene.truth.key(key)?;
    let place = facts.queue.iter().find(|place| place.attempt == attempt)?;
    if scene.truth.keeps(&entry.lane, place.session) {
        return None;
    }
    // In a skip the new grant comes first, and the lock was free until then.
    let free_for = entry.at.saturating_sub(facts.free_since);
    let held_before = facts.standing.iter().any(|grant| grant.since < entry.at);
    let late = !held_before && free_for >= scene.bounds.skip_after;
    let whose = scene.truth.sessions.get(&place.session);
    let whose = whose.and_then(|session| session.keepers.last());
    (!late).then(|| {
        let sentence = format!(
            "{} takes a place for {key:?} away that is not its own, {:.1} s after the lock was freed",
            entry.lane,
            free_for.as_secs_f64()
        );
        let violation = Violation::new(Invariant::Turns, entry.at, sentence)
            .of_key(key)
            .of_lane(&entry.lane);
        whose.into_iter().fold(violation, Violation::of_lane)
    })
}

/// A call that waits, began after faults were healed, and did not end in a grant.
fn answered_in_vain(entry: &Entry, scene: &Scene<'_>) -> Option<Violation> {
    let What::Answered { call, answer } = &entry.what else {
        return None;
    };
    let open = scene.truth.calls.get(call)?;
    let Asks::Acquire { key } = &open.asks else {
        return None;
    };
    let healed =
        scene.truth.phase == Some(Phase::Liveness) && open.since >= scene.truth.phase_since;
    let in_vain = match answer {
        Answer::Failed => true,
        Answer::Held => entry.at.saturating_sub(open.since) >= scene.bounds.hand_over,
        _ => false,
    };
    (healed && in_vain).then(|| {
        let sentence = format!(
            "{} waits for {key:?} in vain although faults were healed: {answer}",
            entry.lane
        );
        Violation::new(Invariant::Turns, entry.at, sentence)
            .of_key(key)
            .of_lane(&entry.lane)
    })
}
