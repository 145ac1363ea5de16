//! `memory:` URLs, on tokio.

#![cfg(feature = "memory")]

use fencelock::{Attempt, Client, ErrorKind};

#[tokio::test]
async fn unnamed_store_is_private_and_a_named_one_is_shared() {
    let (a, b) = (
        Client::connect("memory:").await,
        Client::connect("memory:").await,
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    let _one = a.try_acquire("k").await.unwrap().guard().unwrap();
    assert!(b.try_acquire("k").await.unwrap().guard().is_some());
    assert!(a.clone().try_acquire("k").await.unwrap().guard().is_none());

    let a = Client::connect("memory:shared").await.unwrap();
    let b = Client::connect("memory:shared?owner=b").await.unwrap();
    let guard = b.try_acquire("k").await.unwrap().guard().unwrap();
    let Attempt::Held(Some(holder)) = a.try_acquire("k").await.unwrap() else {
        panic!("two hold it");
    };
    assert_eq!((holder.token, holder.owner.as_str()), (guard.token(), "b"));
}

#[tokio::test]
async fn namespaces_of_one_store_know_nothing_of_each_other() {
    let a = Client::connect("memory:spaces?namespace=a").await.unwrap();
    let b = Client::connect("memory:spaces?namespace=b").await.unwrap();
    let _a = a.try_acquire("k").await.unwrap().guard().unwrap();
    assert!(b.try_acquire("k").await.unwrap().guard().is_some());
}

#[tokio::test]
async fn named_store_ends_with_its_last_client() {
    let a = Client::connect("memory:brief").await.unwrap();
    let guard = a.try_acquire("k").await.unwrap().guard().unwrap();
    let before = guard.token();
    guard.release().await.unwrap();
    a.shutdown().await;
    let a = Client::connect("memory:brief").await.unwrap();
    let guard = a.try_acquire("k").await.unwrap().guard().unwrap();
    assert_eq!(guard.token(), before, "it began anew");
}

#[tokio::test]
async fn what_is_not_there_is_refused_by_name() {
    let mut table = vec![
        ("redis://localhost", "there are memory:"),
        ("localhost", "has no scheme"),
    ];
    if cfg!(not(feature = "etcd")) {
        table.push(("etcd://localhost:2379", "feature `etcd`"));
        table.push(("etcds://localhost:2379", "feature `etcd`"));
    }
    if cfg!(not(feature = "postgres")) {
        table.push(("postgres://localhost/app", "feature `postgres`"));
    }
    for (url, words) in table {
        let refused = Client::connect(url).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

#[test]
fn outside_tokio_connecting_is_refused() {
    let world = sim_runtime::World::new(1);
    let refused = world.block_on(Client::connect("memory:")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
    assert!(refused.to_string().contains("tokio"), "{refused}");
}
