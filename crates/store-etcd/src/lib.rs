//! Fencelock on etcd.
//!
//! [`EtcdLockStore`] keeps locks in anything that has etcd's shape
//! ([`MetadataStore`](etcd_kv::MetadataStore)): a cluster through `EtcdClient`, which the feature
//! `client` adds, or `etcd-mock` in memory. Sessions are leases, tokens are revisions, places in a
//! queue are keys ordered by the revision that created them.
//!
//! What stands where, and why each transaction is as it is, is told in `docs/contract.md`, under
//! etcd. For readers of the code: `ops` has every transaction as a value with the rules for its
//! replies, `codec` every stored name and value; the rest decides what to send next.

mod admin;
mod adopt;
mod attempts;
mod claim;
#[cfg(feature = "client")]
mod client;
mod close;
mod codec;
mod config;
mod core;
mod demand;
mod diagnose;
mod epoch;
mod error;
mod horizon;
mod insert;
mod keep;
mod meta;
mod open;
mod ops;
mod read;
mod recent;
mod reconcile;
mod recovery;
mod release;
mod renew;
mod revoke;
mod session;
mod store;
mod turn;
mod view;
mod wait;
mod wakes;

#[cfg(feature = "client")]
pub use client::{ClientConfig, EtcdClient, examine};
pub use config::EtcdConfig;
pub use store::EtcdLockStore;
