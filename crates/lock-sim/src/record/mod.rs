//! What happened in a run, in the order in which it did.

mod client;
mod commit;
mod entry;
mod lane;
mod log;

pub use client::{Answer, Asks, CallId};
pub use commit::{Commit, EndCause};
pub use entry::{Entry, FaultName, Phase, What};
pub use lane::Lane;
pub use log::Record;
