//! Real servers for tests, and a [`Proxy`] between a test and a server that fails on demand.
//!
//! [`Etcd`] and [`Postgres`] run on free ports of the loopback address, with folders of their own;
//! nothing of the system is started, installed or touched. No server outlives the process of the test, however that
//! ends: each has a supervisor that ends it when the test's end of a pipe closes.
//!
//! This is tooling for tests in real time. Its calls block, and need no async runtime.

mod acceptor;
mod certificates;
mod clock;
mod etcd;
mod folder;
mod packages;
mod ports;
mod postgres;
mod programs;
mod proxy;
mod server;
mod socks;
mod unprivileged;

// Shared with the supervisor, which is built by itself.
#[path = "../supervisor/processes.rs"]
mod processes;
#[path = "../supervisor/user.rs"]
mod user;

pub use certificates::{Authority, Issued};
pub use etcd::{Etcd, EtcdBuilder, RestoredAs, Snapshot};
pub use postgres::{Mode, Postgres, PostgresBuilder, Step};
pub use proxy::{Cut, Direction, Proxy, Trap};
