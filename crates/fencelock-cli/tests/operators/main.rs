//! The commands of operators, as processes, on real servers.

// In helpers too, a failed unwrap is a failed test; real servers and processes take real time.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(
    clippy::disallowed_methods,
    reason = "processes are waited for in real time"
)]

mod asking;
mod clients;
mod command;
pub(crate) mod doctor;
mod ending;
mod entering;
mod help;
mod looking;
mod migrating;
mod pooler;
mod reaping;
mod recovering;
mod sites;
mod snapshots;
mod waiting;
