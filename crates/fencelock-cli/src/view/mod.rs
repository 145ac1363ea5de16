//! What the commands show. Names in JSON are stable, tokens and floors are strings, times are in
//! RFC 3339, and durations in milliseconds.

mod finding;
mod lock;
mod queue;
mod revocation;
mod text;

pub(crate) use self::finding::Findings;
pub(crate) use self::lock::{LockView, Locks};
pub(crate) use self::queue::{SessionView, Sessions, WaiterView, Waiters};
pub(crate) use self::revocation::{OutcomeView, RevocationView, Revocations};
pub(crate) use self::text::{brief, milliseconds, moment, one_line, or_dash};
