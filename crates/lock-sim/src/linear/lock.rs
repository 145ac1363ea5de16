//! A lock as its callers see it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lock_spi::FencingToken;

use super::check::{Limits, Linear, Model, check};
use super::history::{Call, History};
use crate::record::{Answer, Asks, Entry, What};

/// What callers ask of a lock, and what befalls it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LockCall {
    /// Somebody is given the lock.
    Acquire(FencingToken),
    /// The grant ends without a release by its holder that was answered: it expired, it was revoked,
    /// or the release has no answer.
    End(FencingToken),
    /// The holder's release ended the grant.
    Release(FencingToken),
}

/// Held by nobody or by one token, and tokens that rise.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockModel;

impl Model for LockModel {
    /// Who holds it, and the highest token so far.
    type State = (Option<FencingToken>, Option<FencingToken>);
    type Call = LockCall;

    fn start(&self) -> Self::State {
        (None, None)
    }

    fn step(&self, &(holder, highest): &Self::State, call: &LockCall) -> Option<Self::State> {
        match *call {
            LockCall::Acquire(token) => {
                let fits = holder.is_none() && highest < Some(token);
                fits.then_some((Some(token), Some(token)))
            }
            LockCall::End(token) | LockCall::Release(token) => {
                (holder == Some(token)).then_some((None, highest))
            }
        }
    }
}

/// Whether some order explains what callers were told, lock by lock.
pub fn judge(entries: &[Entry], limits: Limits) -> BTreeMap<Arc<str>, Linear> {
    let keys: BTreeSet<_> = entries
        .iter()
        .filter_map(|entry| match &entry.what {
            What::Called { asks, .. } => asks.key().cloned(),
            _ => None,
        })
        .collect();
    let judged = keys.into_iter().map(|key| {
        let verdict = check(&LockModel, &of_key(entries, &key), limits);
        (key, verdict)
    });
    judged.collect()
}

/// What callers of one lock were told, and which grants ended without their doing.
///
/// Of a call that was called off or failed nothing is known, and a grant that came of it nobody was
/// told of: it may have stood for a while, and then it ended.
#[must_use]
pub fn of_key(entries: &[Entry], key: &str) -> History<LockCall> {
    let mut open = BTreeMap::new();
    let mut history = History::new();
    let mut acquired = BTreeMap::new();
    let mut released = BTreeSet::new();
    for entry in entries {
        match &entry.what {
            What::Called { call, asks } if asks.key().is_some_and(|asked| **asked == *key) => {
                open.insert(*call, (asks, entry.at));
            }
            What::Answered { call, answer } => {
                let Some((asks, began)) = open.remove(call) else {
                    continue;
                };
                match (asks, answer) {
                    (Asks::Acquire { .. } | Asks::Try { .. }, Answer::Granted(token)) => {
                        acquired.insert(*token, began);
                        history.push(Call {
                            call: LockCall::Acquire(*token),
                            began,
                            ended: Some(entry.at),
                        });
                    }
                    (Asks::Release { token, .. }, Answer::Released) => {
                        released.insert(*token);
                        history.push(Call {
                            call: LockCall::Release(*token),
                            began,
                            ended: Some(entry.at),
                        });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    // Grants without an answered release ended some time, or stand.
    let ends = acquired
        .iter()
        .filter(|(token, _)| !released.contains(token))
        .map(|(token, began)| Call {
            call: LockCall::End(*token),
            began: *began,
            ended: None,
        });
    let ends: Vec<_> = ends.collect();
    history.extend(ends);
    history
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::EndCause;
    use crate::sample::{Script, a, b, token};

    fn verdict(script: &Script) -> Linear {
        judge(&script.entries, Limits { steps: 10_000 })["k"]
    }

    #[test]
    fn locks_that_pass_from_hand_to_hand_pass() {
        let mut script = Script::new();
        script.grant(a(), 5, 1).release(a(), 5).grant(b(), 7, 2);
        script
            .wait(20_000)
            .ended(crate::record::Lane::Server, 7, EndCause::Expired);
        script.grant(a(), 9, 1);
        assert_eq!(verdict(&script), Linear::Yes);
    }

    #[test]
    fn a_grant_before_the_release_of_another_does_not_pass() {
        let mut script = Script::new();
        script.grant(a(), 5, 1).grant(b(), 7, 2);
        script.wait(1).release(a(), 5);
        assert!(matches!(verdict(&script), Linear::No { .. }));
    }

    #[test]
    fn tokens_that_go_back_do_not_pass() {
        let mut script = Script::new();
        script.grant(a(), 7, 1).release(a(), 7).grant(b(), 5, 2);
        assert!(matches!(verdict(&script), Linear::No { .. }));
    }

    #[test]
    fn a_release_that_is_answered_twice_does_not_pass() {
        let mut script = Script::new();
        script.grant(a(), 5, 1).release(a(), 5);
        let call = script.release_call(a(), 5);
        script.answer(a(), call, Answer::Released);
        assert!(matches!(verdict(&script), Linear::No { .. }));
    }

    #[test]
    fn a_grant_that_ended_by_itself_makes_way() {
        let mut script = Script::new();
        script
            .grant(a(), 5, 1)
            .wait(30_000)
            .grant(b(), token(7).as_u64(), 2);
        assert_eq!(verdict(&script), Linear::Yes);
    }
}
