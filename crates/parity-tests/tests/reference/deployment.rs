//! A fresh reference store for every scenario.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use lock_spi::{FencingToken, LockKey, Runtime, SessionId};
use parity_tests::{Connection, Deployment, Fixture, Scenario, Verdict};
use sim_runtime::World;

use crate::flaws::Flaw;
use crate::state::State;
use crate::store::ReferenceStore;

/// So many interleavings of every scenario are played.
const SEEDS: u64 = 4;

pub(crate) struct Reference;

impl Fixture for Reference {
    fn run(scenario: &Scenario) -> Verdict {
        (0..SEEDS).try_for_each(|seed| play(scenario, None, seed))
    }
}

/// Plays a scenario on a store that perhaps has a flaw.
pub(crate) fn play(scenario: &Scenario, flaw: Option<Flaw>, seed: u64) -> Verdict {
    let world = World::new(seed);
    let deployment = ReferenceDeployment {
        runtime: world.runtime("reference"),
        state: Arc::new(Mutex::new(State::new(flaw))),
        stores: AtomicU64::new(0),
    };
    world.block_on(scenario.play(Arc::new(deployment)))
}

struct ReferenceDeployment {
    runtime: Arc<dyn Runtime>,
    state: Arc<Mutex<State>>,
    stores: AtomicU64,
}

impl ReferenceDeployment {
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap();
        state.pass(self.runtime.now());
        state
    }
}

#[async_trait]
impl Deployment for ReferenceDeployment {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    async fn connect(&self) -> Connection {
        let id = self.stores.fetch_add(1, Ordering::Relaxed);
        let runtime = Arc::clone(&self.runtime);
        let store = ReferenceStore::new(id, runtime, Arc::clone(&self.state));
        Connection {
            faults: Some(Arc::new(store.line())),
            store: Arc::new(store),
        }
    }

    async fn end_session(&self, session: SessionId) {
        self.state().end_session(session, self.runtime.now());
    }

    async fn delete_lock(&self, key: &LockKey) {
        self.state().end_lock(key, self.runtime.now());
    }

    async fn raise_floor(&self, key: &LockKey, floor: FencingToken) {
        self.state().floors.insert(key.clone(), floor);
    }

    async fn residue(&self) -> Vec<String> {
        let state = self.state();
        let sessions = state.sessions.keys().map(|id| format!("session {id}"));
        let locks = state.locks.keys().map(|key| format!("lock {key:?}"));
        let places = state.queues.iter().flat_map(|(key, line)| {
            line.iter()
                .map(move |ticket| format!("place {key:?} {}", ticket.attempt))
        });
        sessions.chain(locks).chain(places).collect()
    }
}
