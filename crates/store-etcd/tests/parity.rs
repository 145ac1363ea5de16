//! The etcd store passes the suite, on a simulated etcd in virtual time.

mod deployment;
mod seeds;

use std::sync::Arc;
use std::time::Duration;

use etcd_mock::{Expiry, MockStore, Options};
use lock_spi::Namespace;
use parity_tests::{Fixture, Scenario, Stop, Verdict};
use sim_runtime::{Weather, World};

use crate::deployment::EtcdDeployment;
use crate::seeds::seeds;

/// So many interleavings of every scenario are played, unless `FENCELOCK_SEEDS` says how many;
/// `FENCELOCK_SEED` plays one.
const SEEDS: u64 = 12;

/// Leases end at once when their time is over.
mod in_time {
    use super::*;

    parity_tests::suite!(InTime);

    struct InTime;

    impl Fixture for InTime {
        fn run(scenario: &Scenario) -> Verdict {
            play(scenario, SEEDS, Expiry::Exact)
        }
    }
}

/// They stand on until the server looks for them, as on a real one, and may be used meanwhile.
mod late {
    use super::*;

    parity_tests::suite!(Late);

    struct Late;

    impl Fixture for Late {
        fn run(scenario: &Scenario) -> Verdict {
            play(scenario, SEEDS / 2, Expiry::Scanned)
        }
    }
}

fn play(scenario: &Scenario, count: u64, expiry: Expiry) -> Verdict {
    for seed in seeds(count) {
        let _told = Told(seed);
        let world = Arc::new(World::new(seed));
        let options = Options::embedded().with_expiry(expiry);
        let deployment = EtcdDeployment {
            runtime: world.runtime("scenario"),
            server: MockStore::in_step_with_options(world.runtime("server"), options),
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
