//! Callers of the planned workload: they take locks in every way that there is, and hold them.

mod acquire;
mod caller;
mod hold;
mod mailbox;

pub(crate) use caller::{Scene, work};
