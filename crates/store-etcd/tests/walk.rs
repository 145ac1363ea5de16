//! Random walks of the protocol on the simulated etcd, seed by seed: loss, delay, reordering and
//! dropped calls, sessions that end, administrators that interfere. What the walks would notice is
//! shown by flaws planted into the store's transactions.
//!
//! `FENCELOCK_SEED=17` walks one seed; `FENCELOCK_SEEDS=10000` walks the first so many.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod common;
#[path = "walk/flaws.rs"]
mod flaws;
mod seeds;
#[path = "walk/mod.rs"]
mod walking;

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::MetadataStore;
use etcd_mock::MockStore;
use lock_spi::Namespace;
use sim_runtime::{Weather, World};

use seeds::seeds;
use walking::{Plan, Stage, Tale, storm};

const SEEDS: u64 = 150;

/// Walks in virtual time, before a server that is made of the simulated one.
fn walk<M: MetadataStore + Clone>(
    seed: u64,
    weather: Weather,
    server: impl FnOnce(MockStore) -> M,
) -> Tale {
    let world = Arc::new(World::new(seed));
    let simulated = MockStore::in_step_with(world.runtime("server"));
    let processes = Arc::clone(&world);
    let stage = Stage {
        server: server(simulated),
        namespace: Namespace::new("walk").unwrap(),
        process: Arc::new(move |name| processes.runtime(name)),
    };
    let plan = Plan {
        walkers: 3,
        rounds: 10,
        pause: Duration::from_secs(1),
        weather,
        oversleeps: true,
        limit: Duration::from_secs(1000),
    };
    world.block_on(walking::walk(stage, plan))
}

#[test]
fn no_attempt_is_granted_twice_or_late_and_nothing_is_left() {
    for seed in seeds(SEEDS) {
        let tale = walk(seed, storm(), |server| server);
        tale.assert_right(seed, false);
    }
}

/// A copy of a request that was answered may make a ghost; it lives until the next renewal.
#[test]
fn copies_of_requests_leave_nothing_beyond_a_renewal() {
    let copies = Weather {
        duplicates: 30,
        ..storm()
    };
    for seed in seeds(SEEDS) {
        let tale = walk(seed, copies.clone(), |server| server);
        tale.assert_right(seed, true);
    }
}

#[test]
fn the_walks_get_somewhere() {
    let grants = (0..20).map(|seed| walk(seed, storm(), |server| server).grants());
    let grants: Vec<_> = grants.collect();
    let all: usize = grants.iter().sum();
    assert!(all > 10 * grants.len(), "{grants:?}");
}
