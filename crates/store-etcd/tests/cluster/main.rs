//! The store on clusters whose members die, freeze, lose their disks or lose sight of each other:
//! nobody is told what is not so, and everybody goes on once it can be.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../live"]
mod live {
    pub(crate) mod stored;
    pub(crate) mod until;
    pub(crate) mod ways;
}

mod dead_members;
mod frozen_members;
mod late_copies;
mod leader_change;
mod partition;
mod stage;
mod stalled_disk;
