//! The etcd store passes the suite on a real server, in real time, with the same faults on the way.

mod deployment;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use lock_sim::Weather;
use lock_spi::{Namespace, Runtime, TokioRuntime};
use parity_tests::{Fixture, Scenario, Verdict};
use store_etcd::EtcdClient;
use test_servers::Etcd;

use crate::deployment::EtcdDeployment;

parity_tests::suite!(RealEtcd);

/// One for all scenarios; each has a namespace of its own.
static SERVER: LazyLock<Etcd> = LazyLock::new(|| Etcd::start().expect("a server of etcd"));
static NAMESPACES: AtomicU32 = AtomicU32::new(0);

struct RealEtcd;

impl Fixture for RealEtcd {
    fn run(scenario: &Scenario) -> Verdict {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a tokio runtime");
        tokio.block_on(async {
            let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
            let url = format!("etcd://{}", SERVER.endpoints().join(","));
            let config = url.parse().expect("a URL");
            let server = EtcdClient::connect(config, Arc::clone(&runtime)).await;
            let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
            let deployment = EtcdDeployment {
                runtime: Arc::clone(&runtime),
                server: server.expect("the server answers"),
                namespace: Namespace::new(format!("parity-{number}")).expect("a namespace"),
                weather: Weather::calm(),
                process: Box::new(move || Arc::clone(&runtime)),
            };
            scenario.play(Arc::new(deployment)).await
        })
    }
}
