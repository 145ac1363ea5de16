//! The etcd store passes the suite on a real server, in real time, with the same faults on the way:
//! as anybody, and as a user who may see nothing but `/dlock/` and whose tokens expire all the time.
//! After every scenario no lock stands that no lease would end.

mod deployment;
mod live {
    pub(crate) mod keys;
}

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use futures_util::{StreamExt, stream};
use lock_spi::{Namespace, Runtime, TokioRuntime};
use parity_tests::{Fixture, SCENARIOS, Scenario, Verdict};
use sim_runtime::Weather;
use store_etcd::EtcdClient;
use test_servers::Etcd;

use crate::deployment::EtcdDeployment;

parity_tests::suite!(RealEtcd);

/// One for all scenarios; each has a namespace of its own.
static SERVER: LazyLock<Etcd> = LazyLock::new(|| Etcd::start().expect("a server of etcd"));

struct RealEtcd;

impl Fixture for RealEtcd {
    fn run(scenario: &Scenario) -> Verdict {
        real_time(play(scenario, &SERVER, ""))
    }
}

/// Even what the deployment does as an operator is done as that user.
#[test]
fn the_whole_suite_passes_as_a_user_of_few_rights_and_short_tokens() {
    /// Scenarios wait more than they work.
    const AT_ONCE: usize = 10;
    let server = Etcd::builder().argument("--auth-token-ttl=3").start();
    let mut server = server.expect("a server of etcd");
    let limited = server.limit_to("locks", "secret", "/dlock/");
    limited.expect("authentication can be enabled");
    let plays = stream::iter(SCENARIOS).map(async |scenario: &Scenario| {
        let verdict = play(scenario, &server, "locks:secret@").await;
        verdict.map_err(|stop| format!("{}: {stop}", scenario.name))
    });
    let verdicts: Vec<_> = real_time(plays.buffer_unordered(AT_ONCE).collect());
    let failed: Vec<_> = verdicts.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn real_time<T>(story: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a tokio runtime");
    tokio.block_on(story)
}

async fn play(scenario: &Scenario, server: &Etcd, user: &str) -> Verdict {
    static NAMESPACES: AtomicU32 = AtomicU32::new(0);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let url = format!("etcd://{user}{}", server.endpoints().join(","));
    let config = url.parse().expect("a URL");
    let server = EtcdClient::connect(config, Arc::clone(&runtime)).await;
    let server = server.expect("the server answers");
    let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
    let namespace = Namespace::new(format!("parity-{number}")).expect("a namespace");
    let deployment = EtcdDeployment {
        runtime: Arc::clone(&runtime),
        server: server.clone(),
        namespace: namespace.clone(),
        weather: Weather::calm(),
        process: Box::new(move || Arc::clone(&runtime)),
    };
    let verdict = scenario.play(Arc::new(deployment)).await;
    live::keys::assert_locks_end_by_themselves(&server, &namespace).await;
    verdict
}
