//! Users, their passwords, and what they may.

use std::time::Duration;

use lock_spi::{Effect, Error, ErrorKind, LockStore, Queue, Result};
use test_servers::Etcd;

use super::node::{RealNode, assert_locks_end_by_themselves, connect, node_on};
use crate::common::key;

async fn as_user(server: &Etcd, user: &str) -> Result<RealNode> {
    let url = format!("etcd://{user}@{}", server.endpoints()[0]);
    node_on(connect(&url).await?).await
}

fn is_denied(error: &Error) -> bool {
    (error.kind(), error.effect()) == (ErrorKind::Denied, Effect::None)
}

#[tokio::test]
async fn who_has_the_wrong_password_or_other_rights_is_denied() {
    let mut server = Etcd::start().unwrap();
    server
        .limit_to("locks", "secret", "/dlock/theirs/")
        .unwrap();
    let wrong = as_user(&server, "locks:wrong").await.map(drop);
    assert!(is_denied(&wrong.unwrap_err()));
    server.ctl(&["user", "add", "stranger:secret"]).unwrap();
    let stranger = as_user(&server, "stranger:secret").await.map(drop);
    assert!(is_denied(&stranger.unwrap_err()));
}

#[tokio::test]
async fn rights_that_are_withdrawn_are_an_error_and_no_loss() {
    let mut server = Etcd::start().unwrap();
    server.limit_to("locks", "secret", "/dlock/").unwrap();
    let node = as_user(&server, "locks:secret").await.unwrap();
    let session = node.session().await;
    let (grant, _) = node.take(session, "k").await;
    let revoke = [
        "role",
        "revoke-permission",
        "locks",
        "--prefix=true",
        "/dlock/",
    ];
    server.ctl(&revoke).unwrap();
    let outcome = node
        .insert(session, "other", node.attempt(), Queue::Never)
        .await;
    assert!(is_denied(&outcome.unwrap_err()));
    let extended = node
        .store
        .extend(&grant.key, grant.token)
        .await
        .unwrap_err();
    assert_eq!(extended.kind(), ErrorKind::Denied);
    let released = node.store.delete_if_owner(&grant.key, grant.token).await;
    assert!(is_denied(&released.unwrap_err()));
    assert!(is_denied(&node.store.read(&key("k")).await.unwrap_err()));
    let grant_again = [
        "role",
        "grant-permission",
        "locks",
        "--prefix=true",
        "readwrite",
        "/dlock/",
    ];
    server.ctl(&grant_again).unwrap();
    let extended = node.store.extend(&grant.key, grant.token).await.unwrap();
    assert_eq!(extended.unwrap().token, grant.token);
    assert_locks_end_by_themselves(&node).await;
}

#[tokio::test]
async fn a_token_that_expires_between_two_calls_is_renewed_unnoticed() {
    let mut server = Etcd::builder()
        .argument("--auth-token-ttl=2")
        .start()
        .unwrap();
    server.limit_to("locks", "secret", "/dlock/").unwrap();
    let node = as_user(&server, "locks:secret").await.unwrap();
    let without_renewal = etcd_client::ConnectOptions::new().with_user("locks", "secret");
    let without_renewal = etcd_client::Client::connect(server.endpoints(), Some(without_renewal));
    let mut without_renewal = without_renewal.await.unwrap();
    without_renewal.get("/dlock/", None).await.unwrap();
    let session = node.session().await;
    let (grant, _) = node.take(session, "k").await;
    // Servers look for tokens that are over once in a second.
    node.runtime.sleep(Duration::from_secs(4)).await;
    let over = without_renewal.get("/dlock/", None).await;
    assert!(over.unwrap_err().to_string().contains("invalid auth token"));
    let extended = node.store.extend(&grant.key, grant.token).await.unwrap();
    assert_eq!(extended.unwrap().token, grant.token);
    node.runtime.sleep(Duration::from_secs(4)).await;
    assert!(
        node.store
            .delete_if_owner(&grant.key, grant.token)
            .await
            .unwrap()
    );
    node.take(session, "k").await;
}
