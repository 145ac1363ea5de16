//! Whole lock clients in one deterministic world.

pub mod bugs;
pub mod check;
pub mod linear;
pub mod record;

#[cfg(test)]
mod sample;
