//! The contract that every Fencelock store keeps.
//!
//! Two kinds of readers come here. **Applications** want the `fencelock` crate, which shows this one
//! as `fencelock::spi`; they meet the types here (keys, tokens, errors) and seldom the trait.
//! **Authors of a store** implement [`LockStore`], whose documentation is the contract clause by
//! clause, and prove it with `parity-tests`.
//!
//! The invariants INV-01 to INV-10 that the clauses cite, and the reasons, stand in
//! `docs/contract.md`.
//!
//! # Features
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `tokio` | yes | `TokioRuntime`, the [`Runtime`] of programs that run on tokio |

mod admin;
mod descriptor;
mod error;
mod forward;
mod id;
pub mod names;
mod observe;
mod outcome;
mod request;
mod runtime;
mod store;
mod text;
mod token;
#[cfg(feature = "tokio")]
mod tokio_runtime;
mod ttl;

pub use admin::StoreAdmin;
pub use descriptor::{Capabilities, Descriptor, Expiry, TokenSource, WakeUp};
pub use error::{Effect, Error, ErrorKind, FloorViolation, Invalid, Result};
pub use id::{AttemptId, RecoveryId, RevocationId, SessionId};
pub use observe::Observed;
pub use outcome::{
    Finding, Gone, GoneReason, Grant, GrantRef, Holder, InsertOutcome, KeptAlive, LockInfo,
    LockOutcome, Migration, Page, Place, Recovery, Revocation, SessionInfo, SessionLease, Severity,
    WaiterInfo,
};
pub use request::{
    InsertRequest, KeepAliveRequest, OpenSessionRequest, PageRequest, PageToken, Queue,
    RecoverRequest, RevokeRequest, RevokeTarget, WaitRequest,
};
pub use runtime::{BoxFuture, Elapsed, Instant, Joined, Runtime, TaskLost};
pub use store::LockStore;
pub use text::{KeyPrefix, LockKey, Namespace, Owner, Payload, Reason};
pub use token::FencingToken;
#[cfg(feature = "tokio")]
pub use tokio_runtime::TokioRuntime;
pub use ttl::Ttl;
