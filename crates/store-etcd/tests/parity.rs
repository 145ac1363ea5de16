//! The etcd store passes the suite, on a simulated etcd in virtual time.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_kv::{DeleteRequest, LeaseId, MetadataStore, PutRequest};
use etcd_mock::MockStore;
use lock_sim::{Faults, Faulty, Weather, World};
use lock_spi::{FencingToken, LockKey, Namespace, Runtime, SessionId};
use parity_tests::{Connection, Deployment, FaultPort, Fixture, Scenario, Stop, Verdict};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use store_etcd::{EtcdConfig, EtcdLockStore};

parity_tests::suite!(SimulatedEtcd);

/// So many interleavings of every scenario are played, unless `FENCELOCK_SEEDS` says how many;
/// `FENCELOCK_SEED` plays one.
const SEEDS: u64 = 12;
const NAMESPACE: &str = "parity";
/// Everything that a stored key spells out.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

struct SimulatedEtcd;

impl Fixture for SimulatedEtcd {
    fn run(scenario: &Scenario) -> Verdict {
        for seed in seeds() {
            let _told = Told(seed);
            let world = Arc::new(World::new(seed));
            let deployment = EtcdDeployment {
                runtime: world.runtime("scenario"),
                server: MockStore::in_step_with(world.runtime("server")),
                weather: weather(seed),
                world: Arc::clone(&world),
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

struct EtcdDeployment {
    runtime: Arc<dyn Runtime>,
    server: MockStore,
    weather: Weather,
    world: Arc<World>,
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

/// The stored form of a key in one of the namespace's families.
fn stored(family: &str, key: &LockKey) -> String {
    let key = utf8_percent_encode(key.as_str(), ENCODED);
    format!("/dlock/{NAMESPACE}/{family}/{key}")
}

#[async_trait]
impl Deployment for EtcdDeployment {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    async fn connect(&self) -> Connection {
        let runtime = self.world.runtime("node");
        let server = self.server.clone();
        let network = Faulty::new(server, Arc::clone(&runtime), self.weather.clone());
        let faults = Arc::new(Network(network.faults()));
        let config = EtcdConfig::new(Namespace::new(NAMESPACE).expect("a namespace"));
        let store = EtcdLockStore::open(network, runtime, config).await;
        Connection {
            store: Arc::new(store.expect("the simulated etcd answers")),
            faults: Some(faults),
        }
    }

    async fn end_session(&self, session: SessionId) {
        let revoked = self.server.lease_revoke(LeaseId(session.as_i64())).await;
        revoked.expect("a session that is open");
    }

    async fn delete_lock(&self, key: &LockKey) {
        let request = DeleteRequest::key(stored("lock", key));
        let answer = self.server.delete(request).await.expect("an answer");
        assert_eq!(answer.deleted, 1, "a lock that is held");
    }

    async fn raise_floor(&self, key: &LockKey, floor: FencingToken) {
        let value = format!("{:020}", floor.as_u64());
        let request = PutRequest::new(stored("floor", key), value);
        self.server.put(request).await.expect("an answer");
    }

    async fn residue(&self) -> Vec<String> {
        let names: Vec<_> = self
            .server
            .entries()
            .into_iter()
            .map(|entry| String::from_utf8_lossy(&entry.key).into_owned())
            .collect();
        let root = format!("/dlock/{NAMESPACE}/");
        let is_residue = |name: &&String| match name[root.len()..].split_once('/') {
            Some(("lock" | "wait" | "session", _)) => true,
            // The other half of a session: it counts where the first has gone.
            Some(("epoch", id)) => !names.contains(&format!("{root}session/{id}")),
            _ => false,
        };
        names.iter().filter(is_residue).cloned().collect()
    }
}

/// The network between one store object and the simulated etcd.
struct Network(Faults);

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

impl FaultPort for Network {
    fn lose_next_replies(&self, count: u32) {
        self.0.lose_next_replies(count);
    }

    fn lose_next_requests(&self, count: u32) {
        self.0.lose_next_requests(count);
    }

    fn hold_requests(&self) {
        self.0.hold_requests();
    }

    fn release_requests(&self) {
        self.0.release_requests();
    }

    fn partition(&self) {
        self.0.partition();
    }

    fn heal(&self) {
        self.0.lose_next_replies(0);
        self.0.lose_next_requests(0);
        self.0.release_requests();
        self.0.heal();
    }
}
