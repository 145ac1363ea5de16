//! Whole lock clients in one deterministic world.

mod believers;
pub mod bugs;
pub mod campaign;
pub mod check;
mod chronicle;
mod cluster;
mod faults;
pub mod linear;
mod node;
mod open_call;
mod phases;
mod plan;
pub mod record;
mod recorded;
mod resource;
mod run;
mod seat;
pub mod shrink;
pub mod timeline;
mod worker;

pub use faults::{Fault, Faults};
pub use node::Node;
pub use resource::{Resource, ResourceError};
pub use run::{Counters, Run, RunOptions, Source, run};

#[cfg(test)]
mod sample;
