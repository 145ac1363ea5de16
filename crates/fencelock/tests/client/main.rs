//! The client in virtual time, over a scripted store and over the embedded one.

// In helpers too, a failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

mod acquire_all;
mod cancellation;
mod drops;
mod election;
mod embedded;
mod health;
mod local;
mod pause;
mod queue;
mod release;
mod renewal;
mod telemetry;
mod threads;
mod timing;
mod transfer;
mod waiting;
mod zombie;
