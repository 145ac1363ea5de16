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
mod production;
pub mod record;
mod recorded;
mod resource;
mod run;
mod seat;
pub mod shrink;
mod simulation;
pub mod timeline;
mod worker;

pub use faults::{Fault, Faults};
pub use node::Node;
pub use resource::{Resource, ResourceError};
pub use run::{Counters, Run, RunOptions, Source, run};
pub use simulation::{Failed, Report, Setting, Simulation};

#[cfg(test)]
mod sample;
