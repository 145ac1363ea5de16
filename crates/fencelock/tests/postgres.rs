//! `postgres://` URLs, on a real server.

use std::sync::Arc;
use std::time::Duration;

use fencelock::{Attempt, Client, ErrorKind};
use lock_spi::TokioRuntime;
use store_postgres::{PostgresClient, schema};
use test_servers::{Mode, Postgres};

const DATABASE: &str = "app";

async fn server() -> Postgres {
    let server = Postgres::start().expect("a server of Postgres");
    server.create_database(DATABASE).expect("a database");
    let config = server.url(DATABASE).parse().expect("a URL");
    let client = PostgresClient::new(config, Arc::new(TokioRuntime::current()));
    let made = schema::migrate(&client.expect("a client")).await;
    made.expect("the schema is made");
    server
}

fn url(server: &Postgres, parameters: &str) -> String {
    format!("{}?{parameters}", server.url(DATABASE))
}

#[tokio::test]
async fn clients_of_one_namespace_exclude_each_other_and_tokens_rise() {
    let server = server().await;
    let a = Client::connect(&url(&server, "namespace=jobs&owner=a")).await;
    let b = Client::connect(&url(&server, "namespace=jobs&owner=b")).await;
    let other = Client::connect(&url(&server, "namespace=other")).await;
    let (a, b, other) = (a.unwrap(), b.unwrap(), other.unwrap());
    let first = a.try_acquire("k").await.unwrap().guard().unwrap();
    let Attempt::Held(Some(holder)) = b.try_acquire("k").await.unwrap() else {
        panic!("two hold it");
    };
    assert_eq!(holder.owner.as_str(), "a");
    assert!(other.try_acquire("k").await.unwrap().guard().is_some());

    let token = first.check().unwrap();
    let (second, released) = tokio::join!(
        async { b.acquire("k").wait_at_most(Duration::from_secs(20)).await },
        first.release(),
    );
    released.unwrap();
    let second = second.unwrap();
    assert!(second.check().unwrap() > token);
    second.release().await.unwrap();
    for client in [a, b, other] {
        client.shutdown().await;
    }
}

#[tokio::test]
async fn a_guard_outlives_a_restart_of_its_server() {
    let mut server = server().await;
    let client = Client::connect(&url(&server, "ttl=9s")).await.unwrap();
    let guard = client.acquire("k").await.unwrap();
    let token = guard.check().unwrap();
    for mode in [Mode::Fast, Mode::Immediate] {
        server.restart(mode).unwrap();
        guard.ensure(Duration::from_secs(6)).await.unwrap();
        assert_eq!(guard.check().unwrap(), token);
    }
    guard.release().await.unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn a_database_without_the_schema_is_told_how_to_get_it() {
    let server = Postgres::start().expect("a server of Postgres");
    let refused = Client::connect(&server.url("postgres")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Incompatible);
    let told = refused.to_string();
    assert!(told.contains("store_postgres::schema::sql"), "{told}");
}

#[tokio::test]
async fn nobody_there_is_an_error_that_can_be_tried_again() {
    // Nothing listens on the port of discard.
    let refused = Client::connect("postgres://127.0.0.1:9/app").await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.is_retryable());
}
