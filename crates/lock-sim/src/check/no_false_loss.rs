//! INV-05: nothing is called lost but on a definite answer, or when the holder's own deadline has
//! passed.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::FencingToken;

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Answer, Asks, Entry, What};

/// Clocks are read a moment before they are written down.
const ROUNDING: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
pub(super) struct NoFalseLoss;

impl Checker for NoFalseLoss {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        match &entry.what {
            What::Lost {
                key,
                token,
                definite,
            } => {
                let sentence = match definite {
                    true => called_gone(entry, scene, key, *token),
                    false => given_up(entry, scene, key, *token),
                };
                found.extend(sentence.map(|sentence| about(entry, key, *token, sentence)));
            }
            What::Answered {
                call,
                answer: Answer::AlreadyGone,
            } => {
                let open = scene.truth.calls.get(call).map(|open| &open.asks);
                if let Some(Asks::Release { key, token }) = open
                    && let Some(sentence) = still_there(entry, scene, key, *token)
                {
                    found.push(about(entry, key, *token, sentence));
                }
            }
            _ => {}
        }
    }
}

fn about(entry: &Entry, key: &Arc<str>, token: FencingToken, sentence: String) -> Violation {
    Violation::new(Invariant::NoFalseLoss, entry.at, sentence)
        .of_key(key)
        .of_lane(&entry.lane)
        .of_token(token)
}

/// A definite loss of what stands.
fn called_gone(
    entry: &Entry,
    scene: &Scene<'_>,
    key: &Arc<str>,
    token: FencingToken,
) -> Option<String> {
    let grant = scene.truth.key(key)?.stands(token)?;
    // An own deadline that has passed is as good: the client then closes the session itself.
    let session = scene.truth.sessions.get(&grant.session)?;
    (entry.at < session.until && !scene.truth.rewound).then(|| {
        format!(
            "{} says that token {token} of {key:?} is definitely gone, and it stands until {:.3} s",
            entry.lane,
            session.until.as_secs_f64()
        )
    })
}

/// A loss for want of time, with time left.
fn given_up(
    entry: &Entry,
    scene: &Scene<'_>,
    key: &Arc<str>,
    token: FencingToken,
) -> Option<String> {
    let grant = scene.truth.key(key)?.stands(token)?;
    let session = scene.truth.sessions.get(&grant.session)?;
    let rate = scene.truth.rate(&entry.lane);
    // Whoever notices that the store went back gives up everything.
    if rate > scene.bounds.clock_rate || scene.truth.rewound {
        return None;
    }
    // A fast clock reaches the deadline sooner.
    let early = ROUNDING + session.ttl.mul_f64(fraction(rate));
    let deadline = session
        .told_until?
        .checked_sub(scene.bounds.margin + early)?;
    (entry.at < deadline).then(|| {
        format!(
            "{} gives up token {token} of {key:?}, whose last confirmed renewal lasts until {:.3} s",
            entry.lane,
            deadline.as_secs_f64()
        )
    })
}

/// "Already gone" of what the client has no reason to give up, and what stands.
fn still_there(
    entry: &Entry,
    scene: &Scene<'_>,
    key: &Arc<str>,
    token: FencingToken,
) -> Option<String> {
    given_up(entry, scene, key, token).map(|_| {
        format!(
            "{} is told that token {token} of {key:?} was gone before its release, and it stands",
            entry.lane
        )
    })
}

pub(super) fn fraction(parts_per_million: u64) -> f64 {
    let parts = u32::try_from(parts_per_million).unwrap_or(u32::MAX);
    f64::from(parts) / 1e6
}
