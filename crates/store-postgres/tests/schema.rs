//! Making the schema, and who may use it.

mod stage;

use futures_util::future::join_all;
use lock_spi::{ErrorKind, LockStore};
use store_postgres::PostgresLockStore;
use store_postgres::schema::{self, Role};
use test_servers::Postgres;

use crate::stage::{DATABASE, Node, TTL, client, config, key, opening, revoking, runtime, server};

fn empty() -> Postgres {
    let server = Postgres::start().expect("a server of Postgres");
    server.create_database(DATABASE).expect("a database");
    server
}

async fn refused(url: &str) -> lock_spi::Error {
    let store = PostgresLockStore::connect(client(url), runtime(), config()).await;
    store.expect_err("no store")
}

fn advisory_locks(server: &Postgres) -> String {
    let count = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    server.psql(DATABASE, count).expect("an answer")
}

/// P41, backends test 63: several at once make it once; an application's own migrations are not
/// touched; nothing is left locked. Connecting alone makes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_at_once_make_the_schema_once() {
    let server = empty();
    let url = server.url(DATABASE);
    let own = "CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, checksum bytea); \
               INSERT INTO _sqlx_migrations VALUES (1, 'theirs')";
    server.psql(DATABASE, own).unwrap();
    let error = refused(&url).await;
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error:?}");
    assert!(error.to_string().contains("StoreAdmin::migrate"), "{error}");
    let before = schema::inspect(&client(&url)).await.unwrap();
    assert_eq!((before.found, before.wanted), (None, schema::WANTED));
    let clients: Vec<_> = (0..5).map(|_| client(&url)).collect();
    for made in join_all(clients.iter().map(schema::migrate)).await {
        assert_eq!(made.unwrap().found, Some(schema::WANTED));
    }
    let history = server.psql(DATABASE, "SELECT version FROM dlock.migrations");
    assert_eq!(history.unwrap(), "1");
    let theirs = server.psql(DATABASE, "SELECT version, checksum FROM _sqlx_migrations");
    assert_eq!(theirs.unwrap(), r"1|\x746865697273");
    assert_eq!(advisory_locks(&server), "0");
    Node::at(&url).await.acquire(&key("nightly")).await;
}

/// The text does the same as the function, and once: applied again it fails as a whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_text_makes_the_same_schema() {
    let server = empty();
    let url = server.url(DATABASE);
    server.psql(DATABASE, &schema::sql()).unwrap();
    let node = Node::at(&url).await;
    let grant = node.acquire(&key("nightly")).await;
    assert!(server.psql(DATABASE, &schema::sql()).is_err());
    let again = schema::migrate(&client(&url)).await.unwrap();
    assert_eq!(again.found, Some(schema::WANTED));
    assert!(node.stands(&grant).await);
    assert_eq!(advisory_locks(&server), "0");
}

/// A format that this build does not speak is refused by both numbers, and is not touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_format_is_refused_and_named() {
    let server = server().await;
    let url = server.url(DATABASE);
    for (format, what_to_do) in [(99, "update the program"), (0, "StoreAdmin::migrate")] {
        let set = format!("UPDATE dlock.meta SET format = {format}");
        server.psql(DATABASE, &set).unwrap();
        let error = refused(&url).await;
        assert_eq!(error.kind(), ErrorKind::Incompatible, "{error:?}");
        let told = error.to_string();
        assert!(told.contains(&format!("of format {format}")), "{told}");
        assert!(
            told.contains(&format!("speaks {}", schema::WANTED)),
            "{told}"
        );
        assert!(told.contains(what_to_do), "{told}");
    }
    server
        .psql(DATABASE, "UPDATE dlock.meta SET format = 99")
        .unwrap();
    let error = schema::migrate(&client(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error:?}");
}

/// P12, F-12, backends test 64: a role has what it was granted, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_may_do_what_they_are_for() {
    let server = server().await;
    let names = [(Role::Application, "an \"app\""), (Role::Reaper, "reaper")];
    server
        .psql(
            DATABASE,
            "CREATE ROLE \"an \"\"app\"\"\" LOGIN; CREATE ROLE reaper LOGIN; \
                         CREATE ROLE nobody LOGIN",
        )
        .unwrap();
    for (role, name) in names {
        server.psql(DATABASE, &schema::grants(role, name)).unwrap();
    }
    let url = |user: &str| format!("postgres://{user}@{}/{DATABASE}", server.address());
    let node = Node::at(&url("an%20%22app%22")).await;
    let key = key("nightly");
    let grant = node.acquire(&key).await;
    assert!(node.renew(&[&grant]).await.unwrap().is_some());
    let waiting = node.enqueue(&key).await;
    let admin = node.store.admin().unwrap();
    assert_eq!(admin.waiters(&key).await.unwrap().len(), 1);
    assert!(admin.diagnose().await.is_ok() && admin.migrate().await.is_ok());
    let abandoned = node
        .store
        .abandon(&key, node.session, waiting.attempt)
        .await;
    abandoned.unwrap();
    assert!(node.release(&grant).await.unwrap());
    assert!(node.store.revoke(revoking(&key)).await.is_ok());
    node.store.close_session(node.session).await.unwrap();
    let denied = node.store.reap_expired(10).await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied, "{denied:?}");

    let reaper = PostgresLockStore::connect(client(&url("reaper")), runtime(), config()).await;
    let reaper = reaper.unwrap();
    assert_eq!(reaper.reap_expired(10).await.unwrap(), 0);
    let session = lock_spi::SessionId::random(&*runtime());
    let denied = reaper
        .open_session(opening(session, TTL))
        .await
        .unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied, "{denied:?}");

    let denied = refused(&url("nobody")).await;
    assert_eq!(denied.kind(), ErrorKind::Denied, "{denied:?}");
}
