//! The random walks of the protocol while servers are killed and come back: on one server, and on a
//! cluster whose leader it always is. Nothing that was told is taken back, and the history that the
//! survivors have is as that of any other walk.
//!
//! `FENCELOCK_SEED=17` walks that seed.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod common;
#[path = "walk/patient.rs"]
mod patient;
#[path = "walk/seeded.rs"]
mod seeded;
mod seeds;
#[path = "walk/mod.rs"]
mod walking;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use lock_spi::{Namespace, Runtime, TokioRuntime};
use store_etcd::EtcdClient;
use test_servers::Etcd;
use tokio::task::spawn_blocking;

use patient::Patient;
use seeded::Seeded;
use seeds::seeds;
use walking::{Plan, Stage, Tale, storm};

/// Between one leader that serves and its end.
const REIGN: Duration = Duration::from_secs(3);
/// How long who was killed stays away.
const ABSENCE: Duration = Duration::from_millis(500);

/// Kills whoever leads, again and again, until told to stop; how often.
fn kill_leaders(etcd: &mut Etcd, stop: &Receiver<()>) -> usize {
    let goes_on = |time| stop.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    let mut killed = 0;
    while goes_on(REIGN) {
        let leader = etcd.leader().unwrap();
        etcd.kill(leader).unwrap();
        goes_on(ABSENCE);
        etcd.restart(leader).unwrap();
        killed += 1;
    }
    killed
}

async fn walk(seed: u64, endpoints: &[String]) -> Tale {
    let tokio: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let url = format!("etcd://{}", endpoints.join(","));
    let server = EtcdClient::connect(url.parse().unwrap(), Arc::clone(&tokio)).await;
    let processes = AtomicU64::new(0);
    let stage = Stage {
        server: Patient::new(server.expect("the server answers"), tokio),
        namespace: Namespace::new("walk").unwrap(),
        process: Arc::new(move |_: &str| {
            let stream = processes.fetch_add(1, Ordering::Relaxed);
            Arc::new(Seeded::new(seed, stream)) as Arc<dyn Runtime>
        }),
    };
    let plan = Plan {
        walkers: 4,
        rounds: 12,
        pause: Duration::from_millis(200),
        weather: storm(),
        oversleeps: false,
        limit: Duration::from_secs(180),
    };
    walking::walk(stage, plan).await
}

async fn walk_while_leaders_die(size: usize) {
    for seed in seeds(1) {
        let mut etcd = Etcd::cluster(size).expect("a cluster of etcd");
        let endpoints = etcd.endpoints();
        let (stop, stopped) = mpsc::channel();
        let killer = spawn_blocking(move || kill_leaders(&mut etcd, &stopped));
        let tale = walk(seed, &endpoints).await;
        drop(stop);
        let killed = killer.await.unwrap();
        tale.assert_right(seed, false);
        let grants = tale.grants();
        assert!(
            killed > 1 && grants > 10,
            "{killed} killed, {grants} grants"
        );
    }
}

#[tokio::test]
async fn while_one_server_is_killed_and_comes_back_everything_stays_true() {
    walk_while_leaders_die(1).await;
}

#[tokio::test]
async fn while_the_leaders_of_a_cluster_are_killed_everything_stays_true() {
    walk_while_leaders_die(3).await;
}
