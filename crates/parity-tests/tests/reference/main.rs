//! A plain store in memory passes the suite, and with a flaw it does not.
//!
//! So the scenarios ask nothing that only one kind of store can give, and would notice if a store
//! broke its promise.

// Test code; clippy sees that only inside test functions.
#![allow(clippy::unwrap_used)]

mod admin;
mod deployment;
mod flaws;
mod insert;
mod line;
mod state;
mod store;

use deployment::Reference;

parity_tests::suite!(Reference);
