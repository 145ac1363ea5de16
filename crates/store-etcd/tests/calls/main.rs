//! The store behind a way to a real server that fails: whatever happens to a call, its caller ends
//! with the truth.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../live"]
mod live {
    pub(crate) mod keys;
    pub(crate) mod stored;
    pub(crate) mod until;
    pub(crate) mod ways;
}

mod cut_attempts;
mod cut_grants;
mod cut_sessions;
mod stage;
mod unreachable;
mod watches;
mod wire;
