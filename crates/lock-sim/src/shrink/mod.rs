//! Failures become small: the tape of a run is cut down as long as the same invariant breaks.

mod minimize;
mod passes;
mod story;

pub use minimize::{Budget, Failure, Small, minimize};
pub use story::{Story, story};
