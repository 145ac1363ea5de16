//! Distributed locks that can be trusted.
//!
//! A lock is held until it is released, until it is revoked, or until its holder has been out of
//! reach for its ttl; at any moment at most one grant of a key exists. Every grant bears a fencing
//! token, higher than that of every earlier grant of the key, so that a resource can refuse a holder
//! that does not know yet that its lock is over.
//!
//! # Examples
//!
//! ```
//! use fencelock::fence::HighWaterMark;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "memory")] {
//! let locks = fencelock::Client::connect("memory:").await?;
//! let Some(guard) = locks.try_acquire("nightly-report").await?.guard() else {
//!     return Ok(()); // someone else is at it
//! };
//! let reports = HighWaterMark::new(); // the resource that the lock protects
//! reports.admit(guard.check()?)?; // the token goes with every write
//! guard.release().await?;
//! locks.shutdown().await;
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # What it guarantees
//!
//! - Two grants of one key never overlap in the store's time, and their tokens rise.
//! - What a [`Guard`] believes is part of what the store has, unless an administrator ended the
//!   grant: its deadline counts from when the last confirmed renewal was sent, on a clock that goes
//!   on during suspend, less a margin.
//! - Those who wait are served in the order in which they took their places in the store's queue;
//!   those of one client have one place together, and keep the order in which they came.
//! - "Lost" is said on a definite answer of the store, or when that deadline has passed; never
//!   because a call failed.
//! - Any future may be dropped at any time: what it began in the store is undone in the background,
//!   at the latest with the session.
//!
//! # What it does not
//!
//! - It does not stop a holder that was suspended between its last check and its write. The
//!   [`fence`] at the resource does.
//!
//! # Features
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `etcd` | no | `etcd://` and `etcds://` URLs: a cluster of etcd; the build needs protoc |
//! | `postgres` | no | `postgres://` URLs: a database of PostgreSQL with the schema of `store-postgres` |
//! | `memory` | yes | `memory:` URLs: the embedded store, for tests and single processes |
//!
//! # Where to go next
//!
//! [`Client`] is where everything begins, [`Guard`] is what it gives. Authors of a store want
//! [`spi`].

mod acquire;
mod acquire_all;
mod admin;
mod adopt;
mod attempt;
mod backend;
mod backoff;
mod builder;
mod client;
mod connect;
mod election;
mod error;
mod grant;
mod guard;
mod guards;
mod health;
mod held;
mod holding;
mod installation;
mod keeper;
mod line;
mod lost;
mod releaser;
mod session;
mod sessions;
mod telemetry;
mod timing;
mod wish;

#[cfg(all(doctest, feature = "memory"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use lock_fence as fence;
pub use lock_spi as spi;

pub use acquire::Acquire;
pub use acquire_all::AcquireAll;
pub use admin::{Admin, Recover, Revoke};
pub use backoff::{Backoff, ExponentialBackoff};
pub use builder::ClientBuilder;
pub use client::{Attempt, Client};
pub use election::{Election, Leader, Leadership};
pub use error::{Error, ErrorKind, Result};
pub use grant::{Grant, NotHandedOver};
pub use guard::{Guard, Release};
pub use guards::Guards;
pub use health::{Health, SessionHealth, SessionPhase};
pub use held::Held;
pub use installation::Installation;
pub use lost::{Lost, LostReason};
pub use sessions::Shutdown;
