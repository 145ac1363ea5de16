//! Whole lock clients in one deterministic world.

pub mod bugs;
pub mod check;
pub mod linear;
pub mod record;
pub mod shrink;
pub mod timeline;

#[cfg(test)]
mod sample;
