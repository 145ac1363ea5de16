//! Servers that are down, frozen, full of connections, or that end a connection in the middle of a
//! call: an error in time, never an outcome; and afterwards everything is as it was.

mod stage;

use lock_spi::{Effect, InsertOutcome, KeyPrefix, LockStore, Queue, SessionId};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use test_servers::{Mode, Postgres};

use crate::stage::{
    DATABASE, LIMIT, Node, TTL, attempt, end_backends, eventually, insist, key, opening, page,
    revoking, runtime, server, unavailable, with_schema,
};

/// Makes every kind of call; none of them has an outcome.
async fn everything_is_unavailable(node: &Node, grant: &lock_spi::Grant) {
    let (store, free) = (&node.store, key("free"));
    let opening = opening(SessionId::random(&*runtime()), TTL);
    unavailable("open_session", store.open_session(opening)).await;
    let effect = unavailable("keep_alive", node.renew(&[grant])).await;
    assert_eq!(effect, Effect::Unknown);
    let insert = node.insert(&free, attempt(), Queue::Never);
    unavailable("try_insert", insert).await;
    let effect = unavailable("extend", store.extend(&grant.key, grant.token)).await;
    assert_eq!(effect, Effect::Unknown);
    unavailable("revoke", store.revoke(revoking(&free))).await;
    let abandon = store.abandon(&free, node.session, attempt());
    assert_eq!(unavailable("abandon", abandon).await, Effect::Unknown);
    for effect in [
        unavailable("read", store.read(&free)).await,
        unavailable("list", store.list(&KeyPrefix::default(), page())).await,
        unavailable("revocations", store.revocations(&free, page())).await,
    ] {
        assert_eq!(effect, Effect::None, "it only reads");
    }
}

/// Backends tests 12, 55 and 56, P35: while the server is down every call is an error within the
/// limit; when it is back, nothing was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_is_unavailable_and_loses_nothing() {
    let mut server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("held")).await;
    for end in [Some(Mode::Fast), Some(Mode::Immediate), None] {
        match end {
            Some(mode) => server.stop(mode).unwrap(),
            None => server.kill().unwrap(),
        }
        everything_is_unavailable(&node, &grant).await;
        server.start_again().unwrap();
        assert!(insist(async || node.renew(&[&grant]).await).await.is_some());
        assert!(node.stands(&grant).await);
    }
    assert!(insist(async || node.release(&grant).await).await);
}

/// Backends test 13, P37: of a server that stands still nothing can be had but a timeout; once it
/// goes on, what was asked meanwhile has happened once or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_is_unavailable_and_its_late_work_is_settled() {
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("held")).await;
    let (late, wanted) = (attempt(), key("late"));
    server.freeze().unwrap();
    let insert = node.insert(&wanted, late, Queue::Never);
    assert_eq!(unavailable("try_insert", insert).await, Effect::Unknown);
    everything_is_unavailable(&node, &grant).await;
    server.thaw().unwrap();
    let outcome = insist(async || node.insert(&wanted, late, Queue::Never).await).await;
    let InsertOutcome::Granted(of_late) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(node.stands(&grant).await && node.stands(&of_late).await);
    // Whatever else arrived late: only these two stand after a renewal.
    assert!(
        insist(async || node.renew(&[&grant, &of_late]).await)
            .await
            .is_some()
    );
    let standing = server.psql(DATABASE, "SELECT count(*) FROM dlock.grants");
    assert_eq!(standing.unwrap(), "2");
}

/// Where only new connections stay without an answer, those that are there go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postmaster_that_stands_still_holds_up_new_connections_only() {
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("held")).await;
    server.pause().unwrap();
    let extended = node.store.extend(&grant.key, grant.token).await;
    assert!(extended.unwrap().is_some());
    server.resume().unwrap();
    assert!(end_backends(&server, "true") > 0);
    server.pause().unwrap();
    let insert = || node.insert(&grant.key, attempt(), Queue::Never);
    // On the connection that is broken something may have happened; after that there is none.
    unavailable("try_insert", insert()).await;
    assert_eq!(unavailable("try_insert", insert()).await, Effect::None);
    server.resume().unwrap();
    assert!(node.stands(&grant).await);
}

/// P38, backends test 56: a server that takes no more connections is an error without effect, in
/// time; so is a store whose own connections are all busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_free_connection_nothing_happens() {
    let builder = Postgres::builder()
        .setting("max_connections", "8")
        .setting("superuser_reserved_connections", "0")
        .setting("max_wal_senders", "0");
    let server = with_schema(builder.start().expect("a server of Postgres")).await;
    let node = Node::at(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("held")).await;
    let mut others = Vec::new();
    while let Ok(other) = PgConnection::connect(&server.url(DATABASE)).await {
        others.push(other);
    }
    // One of the two finds the connection that is there, the other one none.
    let free = key("free");
    let (one, two) = tokio::join!(
        node.store.extend(&grant.key, grant.token),
        node.insert(&free, attempt(), Queue::Never),
    );
    assert!(one.is_ok() || two.is_ok());
    if let Err(error) = &two {
        assert_eq!(error.effect(), Effect::None, "{error}");
        assert!(error.is_retryable(), "{error}");
    }
    others.clear();
    assert!(insist(async || node.renew(&[&grant]).await).await.is_some());
}

/// Backends test 49, P19: a row that somebody else holds is waited for no longer than half of the
/// limit, and then nothing has happened; meanwhile other keys need another connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_row_is_an_error_without_effect_in_time() {
    let server = server().await;
    let node = Node::at(&format!("{}?connections=1", server.url(DATABASE))).await;
    let (busy, free) = (key("busy"), key("free"));
    let grant = node.acquire(&busy).await;
    let mut other = PgConnection::connect(&server.url(DATABASE)).await.unwrap();
    lock_row(&mut other).await;
    let insert = unavailable(
        "abandon",
        node.store.abandon(&busy, node.session, attempt()),
    );
    let behind = node.insert(&free, attempt(), Queue::Never);
    let (effect, behind) = tokio::join!(insert, behind);
    assert_eq!(effect, Effect::Unknown, "as of every abandon");
    match behind {
        Ok(outcome) => assert!(matches!(outcome, InsertOutcome::Granted(_)), "{outcome:?}"),
        Err(error) => assert_eq!(error.effect(), Effect::None, "{error}"),
    }
    let begun = runtime().now();
    let released = node.release(&grant).await.unwrap_err();
    assert_eq!(released.effect(), Effect::None, "{released:?}");
    assert!(runtime().now().saturating_since(begun) < LIMIT);
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert!(node.release(&grant).await.unwrap());
}

async fn lock_row(other: &mut PgConnection) {
    let lock = "BEGIN; SELECT FROM dlock.locks WHERE lock_key = 'busy' FOR UPDATE";
    let locked = sqlx::raw_sql(lock).execute(other).await;
    locked.expect("nobody else has it");
}

/// Backends test 55, before: a connection that was ended while nobody used it costs nobody an
/// answer, save a release, which cannot be told apart from its repetition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_were_ended_are_replaced() {
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("held")).await;
    let broken = || assert!(end_backends(&server, "true") > 0);
    broken();
    assert!(
        node.store
            .extend(&grant.key, grant.token)
            .await
            .unwrap()
            .is_some()
    );
    broken();
    assert!(node.renew(&[&grant]).await.unwrap().is_some());
    broken();
    let other = attempt();
    let insert = node.insert(&key("other"), other, Queue::Never).await;
    assert!(
        matches!(insert, Ok(InsertOutcome::Granted(_))),
        "{insert:?}"
    );
    broken();
    node.store
        .abandon(&key("other"), node.session, other)
        .await
        .unwrap();
    broken();
    assert!(node.store.revoke(revoking(&key("free"))).await.is_ok());
    broken();
    assert!(node.store.read(&grant.key).await.unwrap().holder.is_some());
    broken();
    let session = SessionId::random(&*runtime());
    assert!(node.store.open_session(opening(session, TTL)).await.is_ok());
    broken();
    assert!(node.store.close_session(session).await.is_ok());
    broken();
    match node.release(&grant).await {
        Ok(released) => assert!(released),
        Err(error) => {
            assert_eq!(error.effect(), Effect::Unknown, "{error}");
            assert!(
                insist(async || node.release(&grant).await).await,
                "it was not done"
            );
        }
    }
    let standing = server.psql(DATABASE, "SELECT count(*) FROM dlock.grants");
    assert_eq!(standing.unwrap(), "0");
}

/// Backends test 55, during: the server ends the connection while the call waits for a row. The
/// call is repeated or fails; whatever happens, its attempt is granted once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_ended_in_the_middle_of_a_call_does_nothing_twice() {
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let busy = key("busy");
    let grant = node.acquire(&busy).await;
    let mut other = PgConnection::connect(&server.url(DATABASE)).await.unwrap();
    let cut = async |other: &mut PgConnection| {
        eventually("the call waits", || {
            stage::backends(&server, "wait_event_type = 'Lock'") > 0
        })
        .await;
        assert!(end_backends(&server, "wait_event_type = 'Lock'") > 0);
        sqlx::raw_sql("ROLLBACK").execute(other).await.unwrap();
    };
    lock_row(&mut other).await;
    let (extended, ()) = tokio::join!(node.store.extend(&busy, grant.token), cut(&mut other),);
    assert!(!matches!(extended, Ok(None)), "it stands");
    lock_row(&mut other).await;
    let (released, ()) = tokio::join!(node.release(&grant), cut(&mut other));
    let error = released.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert!(
        insist(async || node.release(&grant).await).await,
        "it was not done"
    );
    let wanted = attempt();
    lock_row(&mut other).await;
    let (inserted, ()) = tokio::join!(node.insert(&busy, wanted, Queue::Never), cut(&mut other),);
    let again = insist(async || node.insert(&busy, wanted, Queue::Never).await).await;
    let InsertOutcome::Granted(again) = again else {
        panic!("{again:?}");
    };
    if let Ok(InsertOutcome::Granted(first)) = inserted {
        assert_eq!(first.token, again.token, "granted once");
    }
    assert!(node.stands(&again).await);
}
