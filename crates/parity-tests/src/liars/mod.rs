//! Stores that lie: the suite is only worth what it notices.
//!
//! [`Lying`] wraps any store and breaks one promise of the contract, the one that its [`Lie`] names;
//! everything else goes through. [`LIES`] says for each lie which scenario catches it. A further
//! store's author may wrap that store too, and see that its fixture leaves the scenarios their teeth.

mod admin;
mod deployment;
mod endings;
mod inserts;
mod lie;
mod looks;
mod lying;
mod memory;
mod names;
mod queues;
mod revokes;
mod sessions;

pub use deployment::LyingDeployment;
pub use lie::{Caught, LIES, Lie};
pub use lying::Lying;
