//! Known bugs, to be planted: a simulator is worth what it catches.

mod bug;
mod careless;
mod edits;
mod known;
mod lax;
mod planted;
#[cfg(test)]
mod tests;

pub use bug::{Bug, ClusterBug, ServerBug, StoreBug};
pub use known::{Fate, KNOWN, Known};
pub use planted::Planted;
