//! `etcd://` URLs, on a real server.

use std::time::Duration;

use fencelock::{Attempt, Client, ErrorKind};
use test_servers::Etcd;

fn url(etcd: &Etcd, parameters: &str) -> String {
    format!("etcd://{}?{parameters}", etcd.endpoints().join(","))
}

#[tokio::test]
async fn clients_of_one_namespace_exclude_each_other_and_tokens_rise() {
    let etcd = Etcd::start().expect("a server of etcd");
    let a = Client::connect(&url(&etcd, "namespace=jobs&owner=a")).await;
    let b = Client::connect(&url(&etcd, "namespace=jobs&owner=b")).await;
    let other = Client::connect(&url(&etcd, "namespace=other")).await;
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
async fn a_lock_is_kept_while_the_members_of_a_cluster_come_and_go() {
    let mut etcd = Etcd::cluster(3).expect("a cluster of etcd");
    let client = Client::connect(&url(&etcd, "ttl=9s")).await.unwrap();
    let guard = client.acquire("k").await.unwrap();
    let token = guard.check().unwrap();
    for member in 0..3 {
        etcd.kill(member).unwrap();
        etcd.await_ready().unwrap();
        guard.ensure(Duration::from_secs(6)).await.unwrap();
        assert_eq!(guard.check().unwrap(), token);
        etcd.restart(member).unwrap();
    }
    guard.release().await.unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn nobody_there_is_an_error_that_can_be_tried_again() {
    // Nothing listens on the port of discard.
    let refused = Client::connect("etcd://127.0.0.1:9").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.is_retryable());
}
