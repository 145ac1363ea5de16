//! Fencelock on PostgreSQL.
//!
//! [`PostgresLockStore`] keeps locks in the tables of a schema of their own, `dlock`. Each operation
//! is one function of that schema, called as one statement; grants and releases that come at the same
//! time share one. Tokens come from one sequence and are minted under the row lock of their key. [`schema`] makes the schema and says who may use it.
//!
//! What stands where, and why each function is as it is, is told in `docs/contract.md`, under
//! Postgres. For readers of the code: `migrations` has the functions, `calls` each of them as a
//! statement with the rules for its answers, `client` connections and notifications, `error` what
//! each SQLSTATE means, `batch` which calls go together; the rest keeps what a store object has to know of its sessions.

mod admin;
mod adopt;
mod attempts;
mod batch;
mod calls;
mod client;
mod close;
mod config;
mod core;
mod diagnose;
mod error;
mod examine;
mod insert;
mod keep;
mod listening;
mod open;
mod read;
mod reap;
mod recent;
mod release;
mod renew;
mod revoke;
pub mod schema;
mod session;
mod store;
mod wait;
mod wakes;

pub use client::{ClientConfig, PostgresClient};
pub use config::PostgresConfig;
pub use examine::examine;
pub use store::PostgresLockStore;
