//! The client in virtual time, over a scripted store and over the embedded one.

// In helpers too, a failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

mod cancellation;
mod drops;
mod embedded;
mod local;
mod pause;
mod release;
mod renewal;
mod telemetry;
mod threads;
mod timing;
mod waiting;
mod zombie;
