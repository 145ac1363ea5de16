//! Whole lock clients in one deterministic world.
