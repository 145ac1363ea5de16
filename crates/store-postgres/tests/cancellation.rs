//! Futures that are dropped, at whatever moment: the connections go on, nothing is left open inside
//! of the database, and no lock outlives its session.

mod stage;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lock_spi::{
    AttemptId, FencingToken, KeyPrefix, LockKey, LockStore, Queue, Runtime, SessionId, WaitRequest,
};

use crate::stage::{
    DATABASE, Node, backends, config, eventually, insist, key, opening, page, revoking, runtime,
    server,
};

/// So many futures are dropped.
const DROPPED: u64 = 1000;
/// Nobody waits longer than this for one of them.
const PATIENCE_MICROS: u64 = 1500;

/// Polls a future at most so often, and drops it after at most so long.
async fn drop_after<T>(polls: u64, patience: Duration, future: impl Future<Output = T> + Send) {
    let mut future = pin!(future);
    let mut left = polls;
    let polled = std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        future.as_mut().poll(context).map(drop)
    });
    // Whether it was done in time does not matter.
    runtime().timeout(patience, polled).await.ok();
}

type Operation<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The operation of this number, on one of few keys.
fn operation<'a>(node: &'a Node, number: u64, key: &'a LockKey, token: u64) -> Operation<'a> {
    let store = &node.store;
    let token = FencingToken::new(token).expect("a token");
    let attempt = AttemptId::from_u128(u128::from(number));
    match number % 12 {
        0 | 1 => Box::pin(async move { drop(node.insert(key, attempt, Queue::Never).await) }),
        2 | 3 => Box::pin(async move { drop(node.insert(key, attempt, Queue::Join).await) }),
        4 => Box::pin(async move { drop(store.extend(key, token).await) }),
        5 => Box::pin(async move { drop(store.delete_if_owner(key, token).await) }),
        6 => Box::pin(async move { drop(store.abandon(key, node.session, attempt).await) }),
        7 => Box::pin(async move { drop(node.renew(&[]).await) }),
        8 => Box::pin(async move { drop(store.list(&KeyPrefix::default(), page()).await) }),
        9 => Box::pin(async move { drop(store.revoke(revoking(key)).await) }),
        10 => Box::pin(async move {
            let session = SessionId::random(&*runtime());
            drop(
                store
                    .open_session(opening(session, Duration::from_secs(2)))
                    .await,
            );
            drop(store.close_session(session).await);
        }),
        _ => Box::pin(async move {
            let request = WaitRequest {
                key: key.clone(),
                session: node.session,
                attempt,
                place: None,
            };
            drop(store.await_release(request).await);
        }),
    }
}

/// P32, P33, backends tests 14 and 57: with one connection only, a thousand futures are dropped.
/// Afterwards it works, nothing is idle in a transaction, and the next renewal ends whatever the
/// dropped calls have made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_futures_leave_the_connection_usable() {
    let server = server().await;
    let url = format!("{}?connections=1", server.url(DATABASE));
    let node = Node::at(&url).await;
    let runtime: Arc<dyn Runtime> = runtime();
    let keys: Vec<_> = (0..5).map(|number| key(&format!("key {number}"))).collect();
    for number in 0..DROPPED {
        let random = runtime.random();
        let patience = Duration::from_micros(random / 7 % PATIENCE_MICROS);
        let key = &keys[usize::try_from(random % 5).unwrap()];
        let operation = operation(&node, number, key, random % 1000 + 1);
        drop_after(random / 11 % 5, patience, operation).await;
    }
    assert!(insist(async || node.renew(&[]).await).await.is_some());
    eventually("what was begun has come to its end", || {
        backends(&server, "state <> 'idle'") == 0
    })
    .await;
    // What was still under way at that renewal was accounted for by it.
    assert!(insist(async || node.renew(&[]).await).await.is_some());
    let left = "SELECT (SELECT count(*) FROM dlock.grants) + (SELECT count(*) FROM dlock.places)";
    assert_eq!(server.psql(DATABASE, left).unwrap(), "0");
    assert!(backends(&server, "true") <= 2, "one, and one that listens");
    assert_eq!(backends(&server, "state LIKE 'idle in transaction%'"), 0);
    for key in &keys {
        let grant = node.acquire(key).await;
        assert!(node.release(&grant).await.unwrap());
    }
}

/// Backends test 14: what a dropped acquire has taken is free again when its session is over,
/// although nobody does anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lock_of_a_dropped_future_outlives_its_ttl() {
    let server = server().await;
    let ttl = Duration::from_secs(1);
    let node = Node::with(&server.url(DATABASE), config(), ttl).await;
    for polls in 0..4 {
        for number in 0..10 {
            let key = key(&format!("key {polls} {number}"));
            let insert = node.insert(&key, stage::attempt(), Queue::Join);
            drop_after(polls, Duration::from_secs(1), insert).await;
        }
    }
    eventually("all is free", || {
        let left = server.psql(DATABASE, "SELECT count(*) FROM dlock.grants");
        left.unwrap() == "0"
    })
    .await;
}
