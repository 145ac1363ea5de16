//! Processes that want the same lock, on real servers: some are killed, and the next one goes on.

// In helpers too, a failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod candidate;
mod resource;
mod waiting;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::spi::{BoxFuture, FencingToken, Runtime, TokioRuntime};
use fencelock::{Client, Leader};
use futures_util::StreamExt;
use store_postgres::{PostgresClient, schema};
use test_servers::{Etcd, Postgres};

use self::candidate::Candidates;
use self::resource::Resource;

const KEY: &str = "scheduler";
const STANDING: usize = 5;
/// Far more than any hand-over takes, for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// B100, INV-01, INV-04.
#[tokio::test]
async fn killed_leaders_are_followed_one_by_one_on_postgres() {
    const TEST: &str = "killed_leaders_are_followed_one_by_one_on_postgres";
    if candidate::is_one() {
        return candidate::stand().await;
    }
    let server = postgres().await;
    let url = format!("{}?ttl=1s", server.url("app"));
    kill_leaders(&url, TEST, 20).await;
}

/// B100, INV-01, INV-04.
#[tokio::test]
async fn killed_leaders_are_followed_one_by_one_on_etcd() {
    const TEST: &str = "killed_leaders_are_followed_one_by_one_on_etcd";
    if candidate::is_one() {
        return candidate::stand().await;
    }
    let (_etcd, url) = etcd();
    kill_leaders(&format!("{url}?ttl=2s"), TEST, 20).await;
}

/// A server with the schema in a database `app`.
async fn postgres() -> Postgres {
    let server = Postgres::start().expect("a server of Postgres");
    server.create_database("app").expect("a database");
    let config = server.url("app").parse().unwrap();
    let client = PostgresClient::new(config, Arc::new(TokioRuntime::current()));
    let made = schema::migrate(&client.unwrap()).await;
    made.expect("the schema is made");
    server
}

/// A server and its URL.
fn etcd() -> (Etcd, String) {
    let etcd = Etcd::start().expect("a server of etcd");
    let url = format!("etcd://{}", etcd.endpoints().join(","));
    (etcd, url)
}

/// Has as many leaders killed, each as soon as the resource and an observer know it.
async fn kill_leaders(url: &str, test: &str, kills: usize) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let resource = Resource::open(&runtime).await;
    let observer = Client::connect(&format!("{url}&owner=observer")).await;
    let seen = observe(&observer.unwrap(), &runtime);
    let mut candidates = Candidates::new(test, url, resource.address());
    (0..STANDING).for_each(|_| candidates.start());

    let mut last = None;
    let mut name = String::new();
    for kill in 0..=kills {
        let next = resource.reign_after(last);
        let (token, whose) = within(&runtime, next).await;
        let told = poll(&runtime, || {
            reigns(&seen).last() == Some(&(token, whose.clone()))
        });
        within(&runtime, told).await;
        (last, name) = (Some(token), whose);
        if kill < kills {
            candidates.kill(&name);
            candidates.start();
        }
    }
    candidates.kill(&name);
    assert_eq!(resource.refused(), [], "two led at one time");
    assert_eq!(resource.reigns().len(), kills + 1);
    assert_eq!(
        reigns(&seen),
        resource.reigns(),
        "an observer sees each, in order"
    );
}

/// Collects what an observer sees.
fn observe(client: &Client, runtime: &Arc<dyn Runtime>) -> Arc<Mutex<Vec<Leader>>> {
    let election = client.election(KEY).unwrap();
    let election = election.observe_every(Duration::from_millis(200));
    let mut leaders = election.observe();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&seen);
    let observing: BoxFuture<()> = Box::pin(async move {
        while let Some(leader) = leaders.next().await {
            tell.lock().unwrap().extend(leader);
        }
    });
    runtime.spawn(observing);
    seen
}

/// Each reign that was seen, and whose it was.
fn reigns(seen: &Mutex<Vec<Leader>>) -> Vec<(FencingToken, String)> {
    let seen = seen.lock().unwrap();
    let reigns = seen.iter().map(|leader| {
        let name = String::from_utf8(leader.payload.as_bytes().to_vec()).unwrap();
        (leader.token, name)
    });
    reigns.collect()
}

async fn poll(runtime: &Arc<dyn Runtime>, mut done: impl FnMut() -> bool) {
    while !done() {
        runtime.sleep(Duration::from_millis(5)).await;
    }
}

async fn within<T>(runtime: &Arc<dyn Runtime>, future: impl Future<Output = T> + Send) -> T {
    let answer = runtime.timeout(PATIENCE, pin!(future)).await;
    answer.expect("in time")
}
