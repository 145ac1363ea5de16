//! Histories: many calls of several clients, played step by step on a store and on a model.
//!
//! [`draw`](draw()) makes a history out of a seed, [`play`](play()) plays it on a deployment. Beside the store goes
//! an executable model of the contract, which knows no store: after each call it says what may be
//! answered, tokens, floors and kinds of errors included. Where the contract or the time that has
//! passed leaves something open, it says several things, and goes on with all that fit the answer.
//!
//! A history on which the two disagree is [shrunk](shrink()) and told [as a test](as_test). Calls name
//! what they mean by small numbers and not by what earlier calls answered, and one that means nothing
//! is passed over, so that each part of a history is a history.
//!
//! # Examples
//!
//! ```no_run
//! use std::sync::Arc;
//! use parity_tests::Deployment;
//! use parity_tests::histories::{Mix, draw, play};
//!
//! async fn agrees(deployment: Arc<dyn Deployment>, seed: u64) {
//!     let history = draw(seed, Mix::Timeless);
//!     if let Err(disagreement) = play(deployment, &history).await {
//!         panic!("seed {seed}: {disagreement}");
//!     }
//! }
//! ```

mod answer;
mod call;
mod draw;
mod model;
mod performer;
mod play;
mod shrink;

pub use call::{Call, Lists, Target, Wish, wish};
pub use draw::{Mix, draw};
pub use play::{Disagreement, play};
pub use shrink::{as_test, shrink};
