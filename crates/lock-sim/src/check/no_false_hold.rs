//! INV-10: what a holder believes is part of what is true, unless a person ended its grant.

use std::time::Duration;

use super::checker::{Checker, Scene};
use super::no_false_loss::fraction;
use super::{Invariant, Violation};
use crate::record::{Entry, What};

/// What an honest clock may add to the time that a holder needs to learn of an end.
const ROUNDING: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(super) struct NoFalseHold;

impl Checker for NoFalseHold {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        let What::Believes { key, token } = &entry.what else {
            return;
        };
        let Some(facts) = scene.truth.key(key) else {
            return;
        };
        let rate = scene.truth.rate(&entry.lane);
        if facts.stands(*token).is_some() || rate > scene.bounds.clock_rate {
            return;
        }
        let sentence = match (facts.past.get(token), facts.ended_from_outside(*token)) {
            (_, Some(past)) => {
                // Whoever ended it did not ask; the next confirmed renewal tells.
                let ttl = facts_ttl(scene);
                let learnt = past.at + ttl + ttl.mul_f64(fraction(rate)) + ROUNDING;
                if entry.at <= learnt {
                    return;
                }
                format!(
                    "{} believes in token {token} of {key:?}, which was ended at {:.3} s, more than a ttl ago",
                    entry.lane,
                    past.at.as_secs_f64()
                )
            }
            (Some(past), None) => format!(
                "{} believes in token {token} of {key:?}, which ended at {:.3} s: {}",
                entry.lane,
                past.at.as_secs_f64(),
                past.cause
            ),
            (None, None) => format!(
                "{} believes in token {token} of {key:?}, which never stood",
                entry.lane
            ),
        };
        let violation = Violation::new(Invariant::NoFalseHold, entry.at, sentence)
            .of_key(key)
            .of_lane(&entry.lane)
            .of_token(*token);
        let successor = facts.standing.iter().map(|grant| grant.token);
        found.push(successor.fold(violation, Violation::of_token));
    }
}

/// The longest ttl of any session.
fn facts_ttl(scene: &Scene<'_>) -> Duration {
    let ttls = scene.truth.sessions.values().map(|session| session.ttl);
    ttls.max().unwrap_or_default()
}
