//! Random calls to the simulated etcd and to a real one: every answer agrees, revision by revision.
//! The calls are those that the naive model of the simulated one is compared by.
//!
//! `FENCELOCK_SEED=17` plays one run; `FENCELOCK_SEEDS=10000` plays the first so many.

#[path = "differential/pair.rs"]
mod pair;
#[path = "differential/place.rs"]
mod place;
mod seeds;
#[path = "../../etcd-mock/tests/model/steps.rs"]
#[allow(dead_code, reason = "steps that the clock decides are left out")]
mod steps;
#[path = "differential/watched.rs"]
mod watched;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use etcd_kv::PutRequest;
use etcd_mock::{Expiry, MockStore, Options};
use lock_spi::{Runtime, TokioRuntime};
use pair::Pair;
use place::Place;
use proptest::collection;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use seeds::seeds;
use steps::{Step, step};
use store_etcd::EtcdClient;
use test_servers::Etcd;

const SEEDS: u64 = 200;
/// Of one run.
const STEPS: Range<usize> = 50..80;

async fn pair(server: &Etcd) -> Pair {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let options = Options::default()
        .with_expiry(Expiry::Scanned)
        .with_min_lease_ttl(2);
    let url = format!("etcd://{}", server.endpoints()[0]);
    let config = url.parse().expect("a URL");
    let real = EtcdClient::connect(config, Arc::clone(&runtime)).await;
    Pair {
        simulated: MockStore::in_step_with_options(Arc::clone(&runtime), options),
        real: Arc::new(real.expect("the server answers")),
        runtime,
        watches: Vec::new(),
    }
}

async fn play(pair: &mut Pair, place: &Place, steps: Vec<Step>) {
    pair.level().await;
    for step in steps {
        let Some(step) = place.take_in(step) else {
            continue;
        };
        let step = step.relative_to(pair.simulated.revision());
        pair.take(&step).await;
    }
    // Whatever should not have come comes before this.
    for key in place.keys() {
        let last = PutRequest::new(key, "last");
        pair.take(&Step::Put(last)).await;
    }
    pair.compare_watches().await;
}

#[test]
fn a_real_etcd_answers_every_call_the_same() {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a tokio runtime");
    let server = Etcd::start().expect("a server of etcd");
    // A run that failed is played again in smaller parts.
    let pair = Mutex::new((tokio.block_on(pair(&server)), 0));
    for seed in seeds(SEEDS) {
        let config = Config {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: 300,
            rng_seed: RngSeed::Fixed(seed),
            ..Config::default()
        };
        let runs = collection::vec(step(), STEPS);
        let outcome = TestRunner::new(config).run(&runs, |steps| {
            let mut pair = pair
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            pair.1 += 1;
            let place = Place::of(pair.1);
            tokio.block_on(play(&mut pair.0, &place, steps));
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("FENCELOCK_SEED={seed}: {failure}");
        }
    }
}
