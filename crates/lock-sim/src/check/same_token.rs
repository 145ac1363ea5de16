//! INV-03: a grant keeps its token as long as it lives.

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Commit, Entry, What};

#[derive(Debug, Default)]
pub(super) struct SameToken;

impl Checker for SameToken {
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>) {
        let (key, token, sentence) = match &entry.what {
            What::Committed(Commit::Rewritten { key, token }) => {
                let sentence =
                    format!("the entry of {key:?} is written over and named {token} from now on");
                (key, token, sentence)
            }
            What::Believes { key, token } => {
                let told = scene.truth.key(key).and_then(|facts| facts.told.get(token));
                if told.is_some_and(|told| told.lane == entry.lane) {
                    return;
                }
                let sentence = format!(
                    "{} believes in token {token} of {key:?}, which it was never given",
                    entry.lane
                );
                (key, token, sentence)
            }
            _ => return,
        };
        found.push(
            Violation::new(Invariant::SameToken, entry.at, sentence)
                .of_key(key)
                .of_lane(&entry.lane)
                .of_token(*token),
        );
    }
}
