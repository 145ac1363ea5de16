//! A backup that is restored under living holders: the store notices that it went back, nobody is
//! lied to, and after a recovery tokens rise above everything that was handed out.

use std::time::Duration;

use etcd_kv::{MetadataStore, RangeRequest};
use lock_spi::{
    Effect, Error, ErrorKind, FencingToken, LockStore, Queue, RecoverRequest, RecoveryId,
    SessionId, WaitRequest,
};
use test_servers::{Etcd, RestoredAs};

use super::node::{RealNode, assert_locks_end_by_themselves, node};
use crate::common::key;

/// Until the server answers over connections that have to be made anew.
async fn is_back(node: &RealNode) {
    while node.kv.range(RangeRequest::key("any")).await.is_err() {
        node.runtime.sleep(Duration::from_millis(50)).await;
    }
}

/// Grants that a backup from before does not know; the highest token among them.
async fn busy(node: &RealNode, session: SessionId) -> FencingToken {
    let mut highest = None;
    for number in 0..20 {
        let (grant, _) = node.take(session, &format!("busy-{number}")).await;
        highest = Some(grant.token);
    }
    highest.unwrap()
}

async fn recover(node: &RealNode) {
    let request = RecoverRequest {
        id: RecoveryId::random(&*node.runtime),
        above: None,
        hold_off: Duration::ZERO,
    };
    let recovery = node.store.admin().unwrap().recover(request).await.unwrap();
    assert!(recovery.closed_for.is_zero());
}

fn went_back<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FloorViolated, "{error:?}");
}

/// B83, B149: everybody who knew it is told, and so is everybody who comes later.
#[tokio::test]
async fn a_cluster_that_is_restored_as_its_former_self_grants_and_loses_nothing_unnoticed() {
    let mut server = Etcd::start().unwrap();
    let (first, second) = (node(&server).await, node(&server).await);
    let (session, other) = (first.session().await, second.session().await);
    let (before, _) = first.take(session, "k").await;
    let backup = server.save().unwrap();
    // Only the lost history knows of this: the lock was released, and given to the next.
    assert!(
        first
            .store
            .delete_if_owner(&before.key, before.token)
            .await
            .unwrap()
    );
    let (after, attempt) = second.take(other, "k").await;
    let highest = busy(&second, other).await;
    server.restore(&backup, RestoredAs::ItsFormerSelf).unwrap();
    is_back(&second).await;

    went_back(second.store.extend(&after.key, after.token).await);
    went_back(second.keep(other, &[&after], &[attempt]).await);
    went_back(second.store.delete_if_owner(&after.key, after.token).await);
    went_back(
        second
            .insert(other, "new", second.attempt(), Queue::Never)
            .await,
    );
    // What was released stands again, and is not the holder's who comes after it to end.
    assert_eq!(second.holder("k").await, Some(before.token));
    let newcomer = node(&server).await;
    let session = newcomer.session().await;
    let attempt = newcomer.attempt();
    went_back(newcomer.insert(session, "new", attempt, Queue::Never).await);
    assert_eq!(newcomer.holder("new").await, None);

    recover(&newcomer).await;
    let session = newcomer.session().await;
    for text in ["k", "new"] {
        let (grant, _) = newcomer.take(session, text).await;
        assert!(grant.token > highest, "{text}");
        for old in [before.token, after.token] {
            for store in [&first.store, &second.store, &newcomer.store] {
                assert!(!store.delete_if_owner(&key(text), old).await.unwrap());
                assert_eq!(store.extend(&key(text), old).await.unwrap(), None);
            }
        }
        assert_eq!(newcomer.holder(text).await, Some(grant.token));
    }
    assert_locks_end_by_themselves(&newcomer).await;
}

/// B149: a counter that is used again names other grants, and the term tells them apart.
#[tokio::test]
async fn an_old_token_does_not_fit_the_grant_that_has_its_counter_now() {
    let mut server = Etcd::start().unwrap();
    let old = node(&server).await;
    let backup = server.save().unwrap();
    let session = old.session().await;
    busy(&old, session).await;
    let (lost, _) = old.take(session, "k").await;
    server.restore(&backup, RestoredAs::ItsFormerSelf).unwrap();
    let newcomer = node(&server).await;
    recover(&newcomer).await;
    let session = newcomer.session().await;
    let (grant, _) = newcomer.take(session, "k").await;
    let mut latest = grant.clone();
    while latest.token.counter() < lost.token.counter() {
        assert!(
            newcomer
                .store
                .delete_if_owner(&latest.key, latest.token)
                .await
                .unwrap()
        );
        latest = newcomer.take(session, "k").await.0;
    }
    is_back(&old).await;
    let namesake = FencingToken::from_parts(lost.token.term(), latest.token.counter()).unwrap();
    for token in [lost.token, namesake] {
        for store in [&old.store, &newcomer.store] {
            assert!(!store.delete_if_owner(&key("k"), token).await.unwrap());
            assert_eq!(store.extend(&key("k"), token).await.unwrap(), None);
        }
    }
    assert_eq!(newcomer.holder("k").await, Some(latest.token));
    assert_locks_end_by_themselves(&newcomer).await;
}

/// As etcd advises to restore: then even who comes new is told.
#[tokio::test]
async fn a_cluster_that_is_restored_as_another_grants_nothing_until_it_is_recovered() {
    let mut server = Etcd::start().unwrap();
    let old = node(&server).await;
    let session = old.session().await;
    let (grant, attempt) = old.take(session, "k").await;
    let backup = server.save().unwrap();
    let highest = busy(&old, session).await;
    server.restore(&backup, RestoredAs::AnotherCluster).unwrap();
    let newcomer = node(&server).await;
    went_back(newcomer.open(SessionId::random(&*newcomer.runtime)).await);
    is_back(&old).await;
    went_back(old.keep(session, &[&grant], &[attempt]).await);
    let admin = newcomer.store.admin().unwrap();
    let findings = admin.diagnose().await.unwrap();
    assert!(
        findings.iter().any(|finding| finding.id == "other_cluster"),
        "{findings:?}"
    );
    recover(&newcomer).await;
    assert_eq!(admin.diagnose().await.unwrap(), []);
    let session = newcomer.session().await;
    let (grant, _) = newcomer.take(session, "k").await;
    assert!(grant.token > highest);
    assert_eq!(
        old.store.extend(&key("busy-0"), highest).await.unwrap(),
        None
    );
}

/// B83: a waiter is woken, looks again, and is told.
#[tokio::test]
async fn who_waits_while_a_backup_is_restored_is_woken_and_told() {
    let mut server = Etcd::start().unwrap();
    let (holder, waiter) = (node(&server).await, node(&server).await);
    let session = holder.session().await;
    holder.take(session, "k").await;
    let backup = server.save().unwrap();
    let session = waiter.session().await;
    let (place, attempt) = waiter.queue(session, "k").await;
    let request = WaitRequest {
        key: key("k"),
        session,
        attempt,
        place: Some(place),
    };
    let waiting = waiter.runtime.run_to_end({
        let store = waiter.store.clone();
        async move { store.await_release(request).await }
    });
    server.restore(&backup, RestoredAs::ItsFormerSelf).unwrap();
    is_back(&waiter).await;
    // A hint, or an error of the server's absence: either has the waiter try again.
    match waiting.await.unwrap() {
        Ok(()) => {}
        Err(error) => assert_ne!(error.effect(), Effect::Unknown, "{error:?}"),
    }
    went_back(waiter.insert(session, "k", attempt, Queue::Join).await);
}
