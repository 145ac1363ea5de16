//! The way to a server: where it is, connections to it, statements on them, notifications from it.

mod config;
mod connect;
mod handshake;
mod hosts;
mod listener;
mod pool;
mod statement;
mod url;

pub use config::ClientConfig;
pub use connect::PostgresClient;

pub(crate) use listener::{Heard, Listener};
pub(crate) use statement::{Answer, Call, Query};
