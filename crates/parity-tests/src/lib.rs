//! The suite that every Fencelock store passes.
//!
//! A store's author writes a [`Fixture`], which plays a scenario on a fresh [`Deployment`] of the
//! store, and has the suite made of it in the store's tests: one `#[test]` for each scenario, named
//! after the fact that it shows.
//!
//! ```text
//! parity_tests::suite!(RedisFixture);
//!
//! struct RedisFixture;
//!
//! impl parity_tests::Fixture for RedisFixture {
//!     fn run(scenario: &Scenario) -> Verdict {
//!         let tokio = tokio::runtime::Runtime::new().expect("a runtime");
//!         tokio.block_on(async {
//!             let deployment = RedisDeployment::in_a_fresh_namespace().await;
//!             scenario.play(Arc::new(deployment)).await
//!         })
//!     }
//! }
//! ```
//!
//! Scenarios know nothing but [`LockStore`](lock_spi::LockStore) and what a deployment offers; they
//! wait on its clock, so that they are right in virtual time and in real time. What a store may
//! decide for itself they read off its
//! [`Capabilities`](lock_spi::Capabilities). [`SCENARIOS`] lists them with the clauses of the
//! contract that each shows.
//!
//! What a store does without, such as faults to inject, stands in [`Fixture::LACKS`]: what does not
//! apply is declared, reported and counted, never silent.
//!
//! Beside the scenarios stand [`histories`], random ones of many clients that a store and a model of
//! the contract must agree on, and [`liars`], which show what the scenarios notice.
//!
//! A store in memory that passes, with its fixture, is the example `toy_store` of this crate.

pub mod histories;
pub mod liars;

mod fixture;
mod lack;
mod scenario;
mod scenarios;
mod scene;
mod session;
mod suite;

pub use fixture::{Connection, Deployment, FaultPort, Fixture};
pub use lack::Lack;
pub use scenario::{Play, Scenario, Stop, Verdict, check, check_lacks};
pub use suite::SCENARIOS;
