//! Who waits is told when it is its turn; and where nobody can tell, looks by itself.

mod stage;

use std::time::Duration;

use lock_spi::{Joined, LockStore, Queue, Result, WaitRequest};
use test_servers::{Postgres, Proxy};

use crate::stage::{
    DATABASE, Node, TTL, attempt, backends, config, end_backends, eventually, insist, key, runtime,
    server,
};

/// Within this time a waiter must be told; it would look by itself much later.
const TOLD: Duration = Duration::from_secs(5);
/// So late.
const SELDOM: Duration = Duration::from_secs(40);

/// A store object that hardly ever looks by itself.
async fn patient(url: &str) -> Node {
    Node::with(url, config().with_look_again(SELDOM), TTL).await
}

fn wait(node: &Node, request: WaitRequest) -> Joined<Result<()>> {
    let store = node.store.clone();
    runtime().run_to_end(async move { store.await_release(request).await })
}

async fn told(wait: Joined<Result<()>>) {
    let told = runtime().timeout(TOLD, wait).await;
    let told = told.expect("in time").expect("the task ends");
    told.expect("it can watch");
}

async fn somebody_listens(server: &Postgres) {
    eventually("somebody listens", || listening(server) == 1).await;
    // Its first look comes after that.
    eventually("it has looked", || {
        backends(server, "state = 'active'") == 0
    })
    .await;
}

fn listening(server: &Postgres) -> usize {
    backends(server, "query LIKE 'LISTEN%'")
}

/// P28, P29, backends tests 18 and 62: the release by another store object is heard, on a channel
/// whose name is always as long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_another_store_object_is_heard() {
    let server = server().await;
    let holder = Node::at(&server.url(DATABASE)).await;
    let waiter = patient(&server.url(DATABASE)).await;
    let longest = "k".repeat(512);
    for name in ["nightly", &longest] {
        let grant = holder.acquire(&key(name)).await;
        let wait = wait(&waiter, waiter.enqueue(&grant.key).await);
        somebody_listens(&server).await;
        assert!(holder.release(&grant).await.unwrap());
        told(wait).await;
    }
    let channels = backends(&server, "query ~ '^LISTEN \"dlock_[0-9a-f]{16}\"$'");
    assert_eq!(channels, 1);
}

/// A release by the same store object needs no notification: it is told at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_the_same_store_object_is_told_inside_of_it() {
    let server = server().await;
    let node = patient(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("nightly")).await;
    let wait = wait(&node, node.enqueue(&grant.key).await);
    somebody_listens(&server).await;
    assert!(node.release(&grant).await.unwrap());
    told(wait).await;
    assert_eq!(backends(&server, "query LIKE '%pg_notify%'"), 0);
}

/// P30, backends test 60: the connection that listens is ended, and what was notified meanwhile is
/// lost; whoever waits looks again, and a new one hears the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_gap_everybody_looks() {
    let server = server().await;
    let holder = Node::at(&server.url(DATABASE)).await;
    let waiter = patient(&server.url(DATABASE)).await;
    let grant = holder.acquire(&key("nightly")).await;
    let first = wait(&waiter, waiter.enqueue(&grant.key).await);
    somebody_listens(&server).await;
    for _ in 0..3 {
        assert_eq!(end_backends(&server, "query LIKE 'LISTEN%'"), 1);
        eventually("another one listens", || listening(&server) == 1).await;
    }
    assert_eq!(end_backends(&server, "query LIKE 'LISTEN%'"), 1);
    assert!(holder.release(&grant).await.unwrap());
    told(first).await;
    let grant = holder.acquire(&key("hourly")).await;
    let second = wait(&waiter, waiter.enqueue(&grant.key).await);
    somebody_listens(&server).await;
    assert!(holder.release(&grant).await.unwrap());
    told(second).await;
}

/// P30, backends test 60: the connection that listens is open, and nothing arrives on it any more.
/// Who waits looks by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn into_a_black_hole_a_waiter_looks_by_itself() {
    let server = server().await;
    let way = Proxy::to(&server.address()).unwrap();
    let holder = Node::at(&server.url(DATABASE)).await;
    let url = format!(
        "postgres://postgres@{}/{DATABASE}?sslmode=disable",
        way.endpoint()
    );
    let waiter = Node::with(&url, config().with_look_again(Duration::from_secs(1)), TTL).await;
    let grant = holder.acquire(&key("nightly")).await;
    let request = waiter.enqueue(&grant.key).await;
    let first = wait(&waiter, request.clone());
    somebody_listens(&server).await;
    way.mute();
    assert!(holder.release(&grant).await.unwrap());
    // It may find its own connections mute as well, and says so; the next ones work.
    let answer = runtime().timeout(TOLD, first).await;
    if let Err(error) = answer.expect("in time").unwrap() {
        assert_eq!(error.effect(), lock_spi::Effect::None, "{error}");
        insist(async || waiter.store.await_release(request.clone()).await).await;
    }
}

/// Those who have no place are in no queue, and nobody would tell them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_place_looks_by_itself_and_soon() {
    let server = server().await;
    let holder = Node::at(&server.url(DATABASE)).await;
    let waiter = patient(&server.url(DATABASE)).await;
    let grant = holder.acquire(&key("nightly")).await;
    let attempt = attempt();
    let refused = waiter.insert(&grant.key, attempt, Queue::Never).await;
    assert!(matches!(refused, Ok(lock_spi::InsertOutcome::Held(_))));
    let wait = wait(
        &waiter,
        WaitRequest {
            key: grant.key.clone(),
            session: waiter.session,
            attempt,
            place: None,
        },
    );
    somebody_listens(&server).await;
    assert!(holder.release(&grant).await.unwrap());
    told(wait).await;
}

/// WAIT-2: many wait at once; they hold no connection, draw no transaction id and keep nobody from
/// working.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_pins_no_connection_and_writes_nothing() {
    let server = server().await;
    let url = format!("{}?connections=2", server.url(DATABASE));
    let node = patient(&url).await;
    let grant = node.acquire(&key("nightly")).await;
    let mut waits = Vec::new();
    for _ in 0..50 {
        waits.push(wait(&node, node.enqueue(&grant.key).await));
    }
    somebody_listens(&server).await;
    assert!(backends(&server, "true") <= 3, "two, and one that listens");
    let drawn = || {
        let drawn = server.psql(DATABASE, "SELECT pg_snapshot_xmax(pg_current_snapshot())");
        drawn.unwrap()
    };
    let before = drawn();
    runtime().sleep(Duration::from_millis(700)).await;
    assert_eq!(drawn(), before);
    assert!(node.store.read(&grant.key).await.unwrap().holder.is_some());
    assert!(node.release(&grant).await.unwrap());
    told(waits.remove(0)).await;
}
