//! A store in memory, and all that it takes to prove it: a deployment, a fixture, one line.
//!
//! ```sh
//! cargo test -p parity-tests --example toy_store
//! cargo run -p parity-tests --example toy_store
//! ```
//!
//! It has no server, so that there are no faults on the way to it, and no means for operators: it
//! says so, and the scenarios that need them are reported and left out.

// It talks to the person who runs it.
#![allow(clippy::print_stdout)]

mod state;
mod toy;

use std::sync::Arc;

use async_trait::async_trait;
use lock_spi::{FencingToken, LockKey, Runtime, SessionId};
use parity_tests::{Connection, Deployment, Fixture, Lack, SCENARIOS, Scenario, Stop, Verdict};
use sim_runtime::World;

use crate::toy::Toy;

/// Plays scenarios on fresh toys, in virtual time.
struct Toys;

impl Fixture for Toys {
    const LACKS: &'static [Lack] = &[Lack::Faults, Lack::Operators];

    fn run(scenario: &Scenario) -> Verdict {
        let world = World::new(0);
        let toy = Toy::new(world.runtime("toy"));
        world.block_on(scenario.play(Arc::new(toy)))
    }
}

#[async_trait]
impl Deployment for Toy {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    async fn connect(&self) -> Connection {
        Connection {
            store: Arc::new(self.another_process()),
            faults: None,
        }
    }

    async fn end_session(&self, session: SessionId) {
        self.state().end_session(session);
    }

    async fn delete_lock(&self, key: &LockKey) {
        self.state().end_lock(key);
    }

    async fn raise_floor(&self, key: &LockKey, floor: FencingToken) {
        self.state().floors.insert(key.clone(), floor);
    }

    async fn residue(&self) -> Vec<String> {
        let state = self.state();
        let sessions = state.sessions.keys().map(|id| format!("session {id}"));
        let locks = state.locks.keys().map(|key| format!("lock {key:?}"));
        let lines = state.lines.values().flatten();
        let places = lines.map(|ticket| format!("place {}", ticket.attempt));
        sessions.chain(locks).chain(places).collect()
    }
}

fn main() {
    let mut passed = 0;
    for scenario in SCENARIOS {
        match Toys::run(scenario) {
            Ok(()) => passed += 1,
            Err(Stop::NotApplicable(lack)) => println!("{}: no {lack}", scenario.name),
            Err(stop) => panic!("{}: {stop}", scenario.name),
        }
    }
    println!("{passed} of {} scenarios pass", SCENARIOS.len());
}

/// The suite, a test for each scenario; and histories, on which the toy and the model agree.
#[cfg(test)]
mod suite {
    use std::sync::Arc;

    use parity_tests::histories::{Mix, draw, play};
    use sim_runtime::World;

    use crate::{Toy, Toys};

    parity_tests::suite!(Toys);

    #[test]
    fn histories_agree_with_the_model() {
        for seed in 0..500 {
            let world = World::new(seed);
            let toy = Arc::new(Toy::new(world.runtime("toy")));
            let agreed = world.block_on(play(toy, &draw(seed, Mix::Timed)));
            agreed.unwrap_or_else(|disagreement| panic!("seed {seed}: {disagreement}"));
        }
    }
}
