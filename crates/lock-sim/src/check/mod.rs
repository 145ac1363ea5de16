//! What must hold, judged entry by entry while a run goes on.

mod bounds;
mod checkers;
mod invariant;
mod violation;

pub use bounds::Bounds;
pub use checkers::Checkers;
pub use invariant::Invariant;
pub use violation::Violation;
