//! What tests on a real server have in common: a server with the schema, and nodes that use it.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{
    AttemptId, Effect, ErrorKind, Grant, InsertOutcome, InsertRequest, KeepAliveRequest, LockKey,
    LockStore, Namespace, OpenSessionRequest, Owner, PageRequest, Payload, Queue, Reason, Result,
    RevocationId, RevokeRequest, RevokeTarget, Runtime, SessionId, TokioRuntime, Ttl, WaitRequest,
};
use store_postgres::{PostgresClient, PostgresConfig, PostgresLockStore, schema};
use test_servers::Postgres;

pub(crate) const DATABASE: &str = "app";
/// Of every session that is not to expire by itself, however slow the machine is.
pub(crate) const TTL: Duration = Duration::from_secs(60);
/// How long one call may take, as it is by default.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);
/// How much later its answer may be seen on a busy machine.
pub(crate) const SLACK: Duration = Duration::from_millis(1500);

pub(crate) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::current())
}

pub(crate) fn key(text: &str) -> LockKey {
    LockKey::new(text).expect("a key")
}

pub(crate) fn attempt() -> AttemptId {
    AttemptId::random(&*runtime())
}

/// A server whose database has the schema.
pub(crate) async fn server() -> Postgres {
    with_schema(Postgres::start().expect("a server of Postgres")).await
}

pub(crate) async fn with_schema(server: Postgres) -> Postgres {
    server.create_database(DATABASE).expect("a database");
    schema::migrate(&client(&server.url(DATABASE)))
        .await
        .expect("the schema is made");
    server
}

pub(crate) fn client(url: &str) -> PostgresClient {
    let config = url.parse().expect("a URL");
    PostgresClient::new(config, runtime()).expect("a client")
}

/// The database behind these addresses, whichever of them takes writes.
pub(crate) fn url_of(addresses: &[String]) -> String {
    let hosts = addresses.join(",");
    format!("postgres://postgres@{hosts}/{DATABASE}?sslmode=disable")
}

/// A store object with an open session.
pub(crate) struct Node {
    pub(crate) store: PostgresLockStore,
    pub(crate) session: SessionId,
}

pub(crate) fn config() -> PostgresConfig {
    PostgresConfig::new(Namespace::new("tests").expect("a namespace"))
}

impl Node {
    pub(crate) async fn at(url: &str) -> Self {
        Self::with(url, config(), TTL).await
    }

    pub(crate) async fn with(url: &str, config: PostgresConfig, ttl: Duration) -> Self {
        let store = PostgresLockStore::connect(client(url), runtime(), config).await;
        let store = store.expect("the server answers");
        let session = SessionId::random(&*runtime());
        let opened = store.open_session(opening(session, ttl)).await;
        opened.expect("the server answers");
        Self { store, session }
    }

    pub(crate) async fn insert(
        &self,
        key: &LockKey,
        attempt: AttemptId,
        queue: Queue,
    ) -> Result<InsertOutcome> {
        let request = InsertRequest {
            key: key.clone(),
            session: self.session,
            attempt,
            payload: Payload::default(),
            queue,
        };
        self.store.try_insert(request).await
    }

    /// Takes a key that is free.
    pub(crate) async fn acquire(&self, key: &LockKey) -> Grant {
        match self.insert(key, attempt(), Queue::Never).await {
            Ok(InsertOutcome::Granted(grant)) => grant,
            other => panic!("{other:?}"),
        }
    }

    /// Takes a place in the queue of a key that is held.
    pub(crate) async fn enqueue(&self, key: &LockKey) -> WaitRequest {
        let attempt = attempt();
        match self.insert(key, attempt, Queue::Join).await {
            Ok(InsertOutcome::Queued(place)) => WaitRequest {
                key: key.clone(),
                session: self.session,
                attempt,
                place: Some(place),
            },
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn release(&self, grant: &Grant) -> Result<bool> {
        self.store.delete_if_owner(&grant.key, grant.token).await
    }

    pub(crate) async fn stands(&self, grant: &Grant) -> bool {
        let extended = insist(async || self.store.extend(&grant.key, grant.token).await).await;
        extended.is_some_and(|extended| extended.token == grant.token)
    }

    /// Keeps the session alive, with nothing but these grants.
    pub(crate) async fn renew(&self, grants: &[&Grant]) -> Result<Option<lock_spi::KeptAlive>> {
        let named = grants.iter().map(|grant| lock_spi::GrantRef {
            key: grant.key.clone(),
            token: grant.token,
        });
        let request = KeepAliveRequest {
            session: self.session,
            grants: named.collect(),
            attempts: Vec::new(),
        };
        self.store.keep_alive(request).await
    }
}

pub(crate) fn opening(session: SessionId, ttl: Duration) -> OpenSessionRequest {
    OpenSessionRequest {
        session,
        owner: Owner::new("test").expect("an owner"),
        ttl: Ttl::new(ttl).expect("a ttl"),
    }
}

pub(crate) fn revoking(key: &LockKey) -> RevokeRequest {
    RevokeRequest {
        key: key.clone(),
        target: RevokeTarget::Whoever,
        id: RevocationId::random(&*runtime()),
        by: Owner::new("operator").expect("an owner"),
        reason: Reason::new("test").expect("a reason"),
    }
}

pub(crate) fn page() -> PageRequest {
    PageRequest::default()
}

/// Repeats a call, as a client does, until it has an outcome.
pub(crate) async fn insist<T>(mut call: impl AsyncFnMut() -> Result<T>) -> T {
    let deadline = runtime().now() + Duration::from_secs(60);
    loop {
        match call().await {
            Ok(outcome) => return outcome,
            Err(error) if error.is_retryable() && runtime().now() < deadline => {
                runtime().sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Looks until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = runtime().now() + Duration::from_secs(10);
    while !holds() {
        assert!(runtime().now() < deadline, "not in time: {what}");
        runtime().sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that a call ends in time, as one that could not be made.
pub(crate) async fn unavailable<T: std::fmt::Debug>(
    what: &str,
    call: impl Future<Output = Result<T>>,
) -> Effect {
    let begun = runtime().now();
    let error = match call.await {
        Ok(outcome) => panic!("{what}: {outcome:?}"),
        Err(error) => error,
    };
    let took = runtime().now().saturating_since(begun);
    assert!(took < LIMIT + SLACK, "{what} took {took:?}");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error:?}");
    error.effect()
}

/// How many of the server's processes serve stores, and are as told.
pub(crate) fn backends(server: &Postgres, condition: &str) -> usize {
    let count = server.psql(
        "postgres",
        &format!(
            "SELECT count(*) FROM pg_stat_activity \
              WHERE application_name = 'fencelock' AND {condition}"
        ),
    );
    let count = count.expect("an answer");
    count.parse().expect("a number")
}

/// Ends the sessions of stores that are as told; how many there were.
pub(crate) fn end_backends(server: &Postgres, condition: &str) -> usize {
    let ended = server.psql(
        "postgres",
        &format!(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity \
              WHERE application_name = 'fencelock' AND {condition}"
        ),
    );
    ended.expect("an answer").parse().expect("a number")
}
