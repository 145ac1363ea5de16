//! A new leader, which gives every lease its whole time anew.

use std::time::Duration;

use etcd_kv::{LeaseId, MetadataStore};
use lock_spi::{InsertOutcome, LockStore, Queue};

use crate::common::{granted, key};
use crate::live::until::until;
use crate::stage::{LONG, Stage, insist, open};

/// Of the holder's session.
const TTL: Duration = Duration::from_secs(4);

/// B152
#[tokio::test]
async fn a_new_leader_gives_leases_their_time_anew_and_the_waiter_still_gets_the_lock() {
    let mut stage = Stage::new();
    let (leader, followers) = stage.roles();
    let (holder, waiter) = (stage.node(&followers).await, stage.node(&followers).await);
    let waiting = open(&waiter, LONG).await;
    let session = open(&holder, TTL).await;
    let (grant, _) = holder.take(session, "k").await;
    let believed = holder.runtime.now() + grant.remaining.unwrap();
    let (_, attempt) = waiter.queue(waiting, "k").await;

    holder.runtime.sleep(TTL / 2).await;
    let killed = holder.runtime.now();
    stage.etcd.kill(leader).unwrap();
    stage.etcd.await_ready().unwrap();
    let acquire = async || match waiter.insert(waiting, "k", attempt, Queue::Join).await {
        Ok(InsertOutcome::Queued(_)) => None,
        Ok(outcome) => Some(granted(outcome)),
        Err(error) => {
            assert!(error.is_retryable(), "{error:?}");
            None
        }
    };
    let next = until("the waiter's turn", acquire).await;
    let now = holder.runtime.now();
    assert!(next.token > grant.token);
    assert!(now >= killed + TTL, "its time began anew");
    assert!(now >= believed, "its holder had ceased to believe");

    let told = async || holder.store.extend(&grant.key, grant.token).await;
    assert_eq!(insist("an answer", told).await, None);
    let old = async || holder.store.delete_if_owner(&key("k"), grant.token).await;
    assert!(!insist("an answer", old).await);
    let stands = async || waiter.store.extend(&next.key, next.token).await;
    assert!(insist("an answer", stands).await.is_some());
}

/// Whatever the lease has left on the server.
#[tokio::test]
async fn a_holder_counts_from_its_own_renewal_and_not_from_the_new_leader() {
    let mut stage = Stage::new();
    let (leader, followers) = stage.roles();
    let node = stage.node(&followers).await;
    let session = open(&node, LONG).await;
    let renewed = node.keep(session, &[], &[]).await;
    let answered = node.runtime.now();
    assert!(renewed.unwrap().is_some());

    stage.etcd.kill(leader).unwrap();
    stage.etcd.await_ready().unwrap();
    let lease = LeaseId(session.as_i64());
    until("the lease has its time anew", async || {
        let left = node.kv.lease_time_to_live(lease).await.ok()?.ttl;
        let left = Duration::from_secs(left.try_into().ok()?);
        (node.runtime.now() + left > answered + LONG).then_some(())
    })
    .await;
    let asked = node.runtime.now();
    let (grant, _) = node.take(session, "k").await;
    assert!(asked + grant.remaining.unwrap() <= answered + LONG);
}
