//! Connections on which nothing arrives any more, or that a server ends for being idle.

use std::time::Duration;

use lock_spi::{InsertOutcome, LockStore, Queue};
use test_servers::{Direction, Postgres, Proxy};

use crate::stage::{
    DATABASE, Node, SLACK, attempt, backends, config, eventually, insist, key, runtime, server,
    url_of, with_schema,
};

/// B88: the server ends whatever is idle for a moment. The holder goes on, and so does who waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_idle_connections_costs_nobody_a_lock() {
    let builder = Postgres::builder()
        .setting("idle_session_timeout", "500ms")
        .setting("idle_in_transaction_session_timeout", "500ms");
    let server = with_schema(builder.start().unwrap()).await;
    let holder = Node::at(&server.url(DATABASE)).await;
    let waiter = Node::at(&server.url(DATABASE)).await;
    let grant = holder.acquire(&key("nightly")).await;
    for _ in 0..3 {
        eventually("all connections are ended", || {
            backends(&server, "true") == 0
        })
        .await;
        let extended = holder.store.extend(&grant.key, grant.token).await;
        assert!(extended.unwrap().is_some());
    }
    assert_eq!(backends(&server, "state LIKE 'idle in transaction%'"), 0);
    let request = waiter.enqueue(&grant.key).await;
    let wait = insist(async || waiter.store.await_release(request.clone()).await);
    let release = async {
        for _ in 0..3 {
            let listening = "query LIKE 'LISTEN%'";
            eventually("it listens", || backends(&server, listening) == 1).await;
            eventually("it was ended", || backends(&server, listening) == 0).await;
        }
        insist(async || holder.release(&grant).await).await
    };
    let ((), released) = tokio::join!(wait, release);
    assert!(released);
    let granted = insist(async || {
        let attempt = request.attempt;
        waiter.insert(&grant.key, attempt, Queue::Join).await
    });
    assert!(matches!(granted.await, InsertOutcome::Granted(_)));
}

/// B91, P13: whether its connection stands does not matter. A holder that is not heard of loses the
/// lock when its ttl is over, not before, and learns of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_is_cut_off_loses_the_lock_at_its_ttl() {
    const LEASE: Duration = Duration::from_secs(2);
    let server = server().await;
    let way = Proxy::to(&server.address()).unwrap();
    let other = Node::at(&server.url(DATABASE)).await;
    let holder = Node::with(&url_of(&[way.endpoint()]), config(), LEASE).await;
    let grant = holder.acquire(&key("nightly")).await;
    let renewed = runtime().now();
    assert!(holder.renew(&[&grant]).await.unwrap().is_some());
    way.swallow(Direction::ToServer);
    way.swallow(Direction::ToClient);
    let attempt = attempt();
    let next = loop {
        match other.insert(&grant.key, attempt, Queue::Never).await {
            Ok(InsertOutcome::Granted(next)) => break next,
            Ok(InsertOutcome::Held(_)) => runtime().sleep(Duration::from_millis(20)).await,
            unwanted => panic!("{unwanted:?}"),
        }
        let late = LEASE + SLACK + SLACK;
        assert!(
            runtime().now().saturating_since(renewed) < late,
            "it is still held"
        );
    };
    assert!(
        runtime().now().saturating_since(renewed) >= LEASE,
        "too early"
    );
    assert!(next.token > grant.token);
    assert!(backends(&server, "true") >= 2, "the connections stand");
    way.heal();
    assert!(!holder.stands(&grant).await);
    assert!(!insist(async || holder.release(&grant).await).await);
    assert!(other.stands(&next).await);
}
