//! Known bugs, to be planted: a simulator is worth what it catches.

mod bug;
mod planted;

pub use bug::{Bug, ClusterBug, ServerBug, StoreBug};
pub use planted::Planted;
