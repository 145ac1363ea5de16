//! Whole lock clients in one deterministic world.

pub mod bugs;
pub mod check;
pub mod record;
