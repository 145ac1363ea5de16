//! The etcd store passes the suite, on a simulated etcd in virtual time.

mod deployment;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use etcd_mock::MockStore;
use lock_sim::{Weather, World};
use lock_spi::Namespace;
use parity_tests::{Fixture, Scenario, Stop, Verdict};

use crate::deployment::EtcdDeployment;

parity_tests::suite!(SimulatedEtcd);

/// So many interleavings of every scenario are played, unless `FENCELOCK_SEEDS` says how many;
/// `FENCELOCK_SEED` plays one.
const SEEDS: u64 = 12;

struct SimulatedEtcd;

impl Fixture for SimulatedEtcd {
    fn run(scenario: &Scenario) -> Verdict {
        for seed in seeds() {
            let _told = Told(seed);
            let world = Arc::new(World::new(seed));
            let deployment = EtcdDeployment {
                runtime: world.runtime("scenario"),
                server: MockStore::in_step_with(world.runtime("server")),
                namespace: Namespace::new("parity").expect("a namespace"),
                weather: weather(seed),
                process: Box::new({
                    let world = Arc::clone(&world);
                    move || world.runtime("node")
                }),
            };
            match world.block_on(scenario.play(Arc::new(deployment))) {
                Err(stop @ Stop::Failed { .. }) => panic!("{stop}"),
                verdict => verdict?,
            }
        }
        Ok(())
    }
}

fn seeds() -> Range<u64> {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse().expect("seeds are numbers"))
    };
    match number("FENCELOCK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FENCELOCK_SEEDS").unwrap_or(SEEDS),
    }
}

/// Tells the seed of a run that fails.
struct Told(u64);

impl Drop for Told {
    #[allow(clippy::print_stderr)] // Where a failing test's output goes.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("FENCELOCK_SEED={}", self.0);
        }
    }
}

/// Every other run has a slow network, in which requests overtake each other.
fn weather(seed: u64) -> Weather {
    let calm = Weather::calm();
    match seed % 2 {
        0 => calm,
        _ => Weather {
            delay: Duration::from_millis(1)..Duration::from_millis(30),
            ..calm
        },
    }
}
