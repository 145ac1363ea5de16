//! The store on a real etcd as operators run it: with users and certificates, full, restored from a
//! backup, with slow elections, and with more keys than one message can carry.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;
mod live {
    pub(crate) mod keys;
}
mod setups {
    mod access;
    mod full_store;
    mod large_answers;
    mod leases;
    mod node;
    mod restored;
    mod tls;
}
