//! Beside the invariants: nothing panics.

use super::checker::{Checker, Scene};
use super::{Invariant, Violation};
use crate::record::{Entry, What};

#[derive(Debug, Default)]
pub(super) struct Sound;

impl Checker for Sound {
    fn observe(&mut self, entry: &Entry, _scene: &Scene<'_>, found: &mut Vec<Violation>) {
        if entry.what == What::Panicked {
            let sentence = format!("a task of {} panicked", entry.lane);
            found.push(Violation::new(Invariant::Sound, entry.at, sentence).of_lane(&entry.lane));
        }
    }
}
