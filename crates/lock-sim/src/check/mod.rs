//! What must hold, judged entry by entry while a run goes on.
//!
//! The order of commits says what is true; what clients ask, are told and believe is held against
//! it. One file for each invariant of the contract.

mod bounds;
mod cascade;
mod checker;
mod checkers;
mod exact_end;
mod gone_for_good;
mod invariant;
mod met;
mod no_false_hold;
mod no_false_loss;
mod no_ghost;
mod one_grant;
mod same_token;
mod sound;
#[cfg(test)]
mod tests;
mod tokens_rise;
mod truth;
mod turns;
mod violation;

pub use bounds::Bounds;
pub use checkers::Checkers;
pub use invariant::Invariant;
pub use met::{LockState, Met};
pub use violation::Violation;
