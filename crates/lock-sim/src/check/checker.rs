use std::fmt::Debug;
use std::time::Duration;

use super::truth::Truth;
use super::{Bounds, Violation};
use crate::record::Entry;

/// What a checker sees beside the entry.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    /// As it was just before the entry.
    pub(crate) truth: &'a Truth,
    pub(crate) bounds: &'a Bounds,
}

/// Judges one invariant.
pub(crate) trait Checker: Debug + Send {
    /// Judges what happened next.
    fn observe(&mut self, entry: &Entry, scene: &Scene<'_>, found: &mut Vec<Violation>);

    /// Judges what is left when nothing happens any more.
    fn finish(&mut self, _at: Duration, _scene: &Scene<'_>, _found: &mut Vec<Violation>) {}
}
