//! Guards of many clients while the only server is killed and comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use etcd_kv::{Consistency, MetadataStore};
use fencelock::spi::{FencingToken, Instant, Runtime, TokioRuntime};
use fencelock::{Client, Guard, Release};
use store_etcd::EtcdClient;
use test_servers::Etcd;
use tokio::task::spawn_blocking;

const CLIENTS: usize = 4;
const KEYS: [&str; 2] = ["a", "b"];
const RESTARTS: usize = 3;
/// Longer than the server is ever away.
const TTL: &str = "60s";
/// Far more than anything here takes, for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// One guard, from when it was had until its release began.
#[derive(Debug)]
struct Hold {
    key: &'static str,
    token: FencingToken,
    from: Instant,
    until: Instant,
}

/// Who takes locks and gives them back until told to stop.
struct Worker {
    client: Client,
    runtime: Arc<dyn Runtime>,
    server: EtcdClient,
    stop: Arc<AtomicBool>,
    holds: Vec<Hold>,
}

impl Worker {
    async fn work(mut self) -> Self {
        while !self.stop.load(Ordering::SeqCst) {
            let key = KEYS[usize::from(self.runtime.random().is_multiple_of(2))];
            match self.client.acquire(key).wait_at_most(PATIENCE).await {
                Ok(guard) => self.hold(key, guard).await,
                Err(error) => assert!(error.is_retryable(), "{error:?}"),
            }
        }
        self
    }

    async fn hold(&mut self, key: &'static str, guard: Guard) {
        let from = self.runtime.now();
        let token = guard.check().expect("it is held");
        self.pause().await;
        assert_eq!(guard.check(), Ok(token), "it is not lost");
        let until = self.runtime.now();
        let hold = Hold {
            key,
            token,
            from,
            until,
        };
        match guard.release().await {
            Ok(Release::Released) => assert!(!stands(&self.server, &hold).await, "{hold:?}"),
            Ok(Release::AlreadyGone) => panic!("lost: {hold:?}"),
            // It is repeated in the background.
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        self.holds.push(hold);
    }

    async fn pause(&self) {
        let pause = self.runtime.jitter(Duration::from_millis(60));
        self.runtime.sleep(pause).await;
    }
}

/// Whether the server has this very grant, once it answers.
async fn stands(server: &EtcdClient, hold: &Hold) -> bool {
    let runtime = TokioRuntime::current();
    let give_up = runtime.now() + PATIENCE;
    let key = format!("/dlock/default/lock/{}", hold.key);
    loop {
        match server
            .get(key.clone().into(), Consistency::Linearizable)
            .await
        {
            Ok(answer) => {
                let counter = hold.token.counter().cast_signed();
                return answer.kv.is_some_and(|kv| kv.mod_revision == counter);
            }
            Err(error) => assert!(runtime.now() < give_up, "{error}"),
        }
        pause().await;
    }
}

async fn pause() {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    runtime.sleep(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn under_load_a_restart_loses_no_guard_no_release_and_no_order() {
    let mut etcd = Etcd::start().expect("a server of etcd");
    let endpoint = etcd.endpoints().remove(0);
    let url = format!("etcd://{endpoint}?ttl={TTL}");
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let direct = format!("etcd://{endpoint}").parse().unwrap();
    let server = EtcdClient::connect(direct, Arc::clone(&runtime))
        .await
        .unwrap();
    let keeper = Client::connect(&url).await.unwrap();
    let kept = keeper.acquire("kept").await.unwrap();
    let token = kept.token();

    let stop = Arc::new(AtomicBool::new(false));
    let mut at_work = Vec::new();
    for _ in 0..CLIENTS {
        let worker = Worker {
            client: Client::connect(&url).await.unwrap(),
            runtime: Arc::clone(&runtime),
            server: server.clone(),
            stop: Arc::clone(&stop),
            holds: Vec::new(),
        };
        at_work.push(runtime.run_to_end(worker.work()));
    }
    for _ in 0..RESTARTS {
        runtime.sleep(Duration::from_secs(1)).await;
        etcd.kill(0).unwrap();
        runtime.sleep(Duration::from_millis(700)).await;
        let restarted = spawn_blocking(move || etcd.restart(0).map(|()| etcd)).await;
        etcd = restarted.unwrap().expect("it comes back");
        assert_eq!(kept.check(), Ok(token), "it is not lost");
    }
    runtime.sleep(Duration::from_secs(1)).await;
    stop.store(true, Ordering::SeqCst);

    let mut holds = BTreeMap::new();
    for work in at_work {
        let worker = work.await.unwrap();
        for hold in worker.holds {
            let grant = (hold.key, hold.token);
            assert!(holds.insert(grant, hold).is_none(), "{grant:?} came twice");
        }
        worker.client.shutdown().await;
    }
    assert!(holds.len() > RESTARTS * CLIENTS, "only {}", holds.len());
    let in_order: Vec<_> = holds.values().collect();
    for [first, second] in in_order.array_windows() {
        let apart = first.key != second.key || first.until <= second.from;
        assert!(apart, "{first:?} and {second:?}");
    }
    for hold in holds.values() {
        assert!(!stands(&server, hold).await, "never released: {hold:?}");
    }
    let left = kept.ensure(Duration::from_secs(45)).await;
    left.expect("its keeper carries on");
    assert_eq!(kept.release().await.unwrap(), Release::Released);
    keeper.shutdown().await;
}
