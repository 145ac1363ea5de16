use super::{Bounds, Violation};
use crate::record::Entry;

/// All invariants at once.
#[derive(Debug)]
pub struct Checkers {
    bounds: Bounds,
    violations: Vec<Violation>,
}

impl Checkers {
    /// Nothing has happened yet.
    #[must_use]
    pub const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            violations: Vec::new(),
        }
    }

    /// Judges what happened next.
    pub fn observe(&mut self, entry: &Entry) {
        let _ = (entry, &self.bounds);
    }

    /// Nothing happens any more: judges what is left.
    pub fn finish(&mut self) {}

    /// What was found so far, in the order in which it was.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Adds what others found wrong, such as a check of the user's own.
    pub fn add(&mut self, violation: Violation) {
        self.violations.push(violation);
    }
}
