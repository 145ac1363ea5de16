//! The scenarios, one chapter of the contract a module.

pub(crate) mod abandon;
pub(crate) mod admin;
pub(crate) mod adopt;
pub(crate) mod beside;
pub(crate) mod cancellation;
pub(crate) mod errors;
pub(crate) mod exclusion;
pub(crate) mod expiry;
pub(crate) mod extend;
pub(crate) mod fencing;
pub(crate) mod floor;
pub(crate) mod idempotency;
pub(crate) mod keys;
pub(crate) mod late;
pub(crate) mod queue;
pub(crate) mod read;
pub(crate) mod release;
pub(crate) mod revoke;
pub(crate) mod scale;
pub(crate) mod session;
pub(crate) mod wait;
