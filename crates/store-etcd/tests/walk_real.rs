//! The random walks of the protocol on a real etcd: the same steps, the same faults on the way, and
//! the same must be true of them. Only what is drawn is the same for the same seed.
//!
//! `FENCELOCK_SEED=17` walks one seed; `FENCELOCK_SEEDS=100` walks the first so many.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod common;
#[path = "walk/seeded.rs"]
mod seeded;
mod seeds;
#[path = "walk/mod.rs"]
mod walking;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lock_spi::{Namespace, Runtime, TokioRuntime};
use store_etcd::EtcdClient;
use test_servers::Etcd;

use seeded::Seeded;
use seeds::seeds;
use walking::{Plan, Stage, Tale, storm};

/// All at one time.
const SEEDS: u64 = 10;

async fn walk(seed: u64, url: &str) -> Tale {
    let tokio: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let server = EtcdClient::connect(url.parse().unwrap(), tokio).await;
    let processes = AtomicU64::new(0);
    let stage = Stage {
        server: server.expect("the server answers"),
        namespace: Namespace::new(format!("walk-{seed}")).unwrap(),
        process: Arc::new(move |_: &str| {
            let stream = processes.fetch_add(1, Ordering::Relaxed);
            Arc::new(Seeded::new(seed, stream)) as Arc<dyn Runtime>
        }),
    };
    let plan = Plan {
        walkers: 3,
        rounds: 8,
        pause: Duration::from_millis(150),
        weather: storm(),
        oversleeps: false,
        limit: Duration::from_secs(120),
    };
    walking::walk(stage, plan).await
}

#[test]
fn on_a_real_server_no_attempt_is_granted_twice_or_late_and_nothing_is_left() {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let etcd = Etcd::start().expect("a server of etcd");
    let url = format!("etcd://{}", etcd.endpoints()[0]);
    let walks = seeds(SEEDS).map(|seed| {
        let url = &url;
        async move { (seed, walk(seed, url).await) }
    });
    for (seed, tale) in tokio.block_on(join_all(walks)) {
        tale.assert_right(seed, false);
        assert!(tale.grants() > 10, "FENCELOCK_SEED={seed}: {tale:?}");
    }
}
