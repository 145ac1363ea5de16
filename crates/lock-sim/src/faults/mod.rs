//! What can go wrong, by families.

mod answers;
mod clocks;
mod data;
mod fault;
mod links;
mod members;
mod menu;
mod operators;
mod processes;
mod stage;
mod watches;

pub(crate) use clocks::HONEST_RATE;
pub use fault::Fault;
pub(crate) use menu::Dose;
pub use menu::Faults;
pub(crate) use stage::Stage;
