use std::time::Duration;

use super::cascade::Cascade;
use super::checker::{Checker, Scene};
use super::exact_end::ExactEnd;
use super::gone_for_good::GoneForGood;
use super::met::Met;
use super::no_false_hold::NoFalseHold;
use super::no_false_loss::NoFalseLoss;
use super::no_ghost::NoGhost;
use super::one_grant::OneGrant;
use super::same_token::SameToken;
use super::sound::Sound;
use super::tokens_rise::TokensRise;
use super::truth::Truth;
use super::turns::Turns;
use super::{Bounds, Violation};
use crate::record::Entry;

/// All invariants at once.
///
/// They are fed entry by entry, in the order of the record; what is wrong is known at once.
#[derive(Debug)]
pub struct Checkers {
    bounds: Bounds,
    truth: Truth,
    checkers: Vec<Box<dyn Checker>>,
    met: Met,
    now: Duration,
    violations: Vec<Violation>,
}

impl Checkers {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            truth: Truth::default(),
            checkers: vec![
                Box::new(OneGrant),
                Box::new(Cascade::default()),
                Box::new(SameToken),
                Box::new(TokensRise::default()),
                Box::new(NoFalseLoss),
                Box::new(ExactEnd::default()),
                Box::new(GoneForGood),
                Box::new(Turns::default()),
                Box::new(NoGhost::default()),
                Box::new(NoFalseHold),
                Box::new(Sound),
            ],
            met: Met::default(),
            now: Duration::ZERO,
            violations: Vec::new(),
        }
    }

    /// What is taken for given.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Judges what happened next.
    pub fn observe(&mut self, entry: &Entry) {
        self.now = entry.at;
        let scene = Scene {
            truth: &self.truth,
            bounds: &self.bounds,
        };
        for checker in &mut self.checkers {
            checker.observe(entry, &scene, &mut self.violations);
        }
        self.truth.apply(entry);
        self.met.observe(entry, &self.truth);
    }

    /// Nothing happens any more: judges what is left.
    pub fn finish(&mut self) {
        let scene = Scene {
            truth: &self.truth,
            bounds: &self.bounds,
        };
        for checker in &mut self.checkers {
            checker.finish(self.now, &scene, &mut self.violations);
        }
    }

    /// What was found so far, in the order in which it was.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Which faults were met in which states of locks.
    #[must_use]
    pub const fn met(&self) -> &Met {
        &self.met
    }

    /// Adds what others found wrong, such as a check of the user's own.
    pub fn add(&mut self, violation: Violation) {
        self.violations.push(violation);
    }
}
