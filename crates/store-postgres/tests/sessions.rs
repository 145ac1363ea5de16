//! What a store object remembers of its sessions and attempts, and what it has the database
//! remember.

mod stage;

use std::time::Duration;

use lock_spi::{InsertOutcome, LockStore, Queue, SessionId};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::stage::{
    DATABASE, Node, TTL, attempt, backends, config, end_backends, eventually, insist, key, opening,
    runtime, server,
};

/// A session that is renewed no more is closed for good with the next one that is opened, long after
/// its time; what lives is left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deserted_session_is_closed() {
    let server = server().await;
    let node = Node::with(&server.url(DATABASE), config(), Duration::from_secs(1)).await;
    node.acquire(&key("deserted")).await;
    let living = SessionId::random(&*runtime());
    let opened = node.store.open_session(opening(living, TTL)).await;
    assert!(opened.is_ok());
    runtime().sleep(Duration::from_millis(2100)).await;
    let opened = node
        .store
        .open_session(opening(SessionId::random(&*runtime()), TTL));
    assert!(opened.await.is_ok());
    let closed = "SELECT string_agg(session::text, ' ') FROM dlock.sessions \
                   WHERE closed_at IS NOT NULL";
    eventually("it is closed", || {
        server.psql(DATABASE, closed).unwrap() == node.session.as_i64().to_string()
    })
    .await;
    assert_eq!(insist(async || node.renew(&[]).await).await, None);
}

/// One call clears and forgets all that is dead, also where that is more than a single statement may
/// hold locks of; and fewer than were allowed says that nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clearing_up_goes_on_until_nothing_is_left() {
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("held")).await;
    let deserted = "INSERT INTO dlock.locks (namespace, lock_key, held, session, incarnation) \
                    SELECT namespace, 'held-' || n, true, 7, 7 \
                    FROM dlock.sessions, generate_series(1, 2500) n; \
                    INSERT INTO dlock.locks (namespace, lock_key) \
                    SELECT namespace, 'idle-' || n \
                    FROM dlock.sessions, generate_series(1, 2500) n; \
                    INSERT INTO dlock.spent (namespace, session, attempt, at) \
                    SELECT namespace, 7, gen_random_uuid(), 'epoch' \
                    FROM dlock.sessions, generate_series(1, 9000) n";
    server.psql(DATABASE, deserted).unwrap();
    assert_eq!(node.store.reap_expired(10_000).await.unwrap(), 2500);
    let count = |what: &str| {
        let count = server.psql(DATABASE, &format!("SELECT count(*) FROM dlock.{what}"));
        count.unwrap()
    };
    assert_eq!(count("spent"), "0");
    assert_eq!(count("locks WHERE held"), "1");
    assert_eq!(count("locks WHERE lock_key LIKE 'idle-%'"), "0");
    assert_eq!(node.store.reap_expired(10_000).await.unwrap(), 0);
    assert!(node.renew(&[&grant]).await.unwrap().is_some());
}

/// Where every request of an attempt was answered the database forgets it with its release; where
/// one was not, a late copy of it must find that the attempt is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_attempts_with_an_unanswered_request_are_remembered() {
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let busy = key("busy");
    let remembered = || {
        let remembered = server.psql(
            DATABASE,
            "SELECT (SELECT count(*) FROM dlock.spent) \
                  + (SELECT count(*) FROM dlock.locks WHERE attempt IS NOT NULL)",
        );
        remembered.unwrap()
    };
    for _ in 0..3 {
        let grant = node.acquire(&busy).await;
        assert!(node.release(&grant).await.unwrap());
        assert_eq!(remembered(), "0");
    }
    let mut other = PgConnection::connect(&server.url(DATABASE)).await.unwrap();
    let lock = "BEGIN; SELECT FROM dlock.locks WHERE lock_key = 'busy' FOR UPDATE";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let wanted = attempt();
    let cut = async {
        eventually("the call waits", || {
            backends(&server, "wait_event_type = 'Lock'") > 0
        })
        .await;
        assert!(end_backends(&server, "wait_event_type = 'Lock'") > 0);
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    };
    let (inserted, ()) = tokio::join!(node.insert(&busy, wanted, Queue::Never), cut);
    drop(inserted);
    let outcome = insist(async || node.insert(&busy, wanted, Queue::Never).await).await;
    let InsertOutcome::Granted(grant) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(node.release(&grant).await.unwrap());
    assert_eq!(remembered(), "1");
    let again = node.insert(&busy, wanted, Queue::Never).await;
    assert_eq!(again.unwrap(), InsertOutcome::Ended);
}
