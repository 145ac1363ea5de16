//! A cluster that goes back, floors that are ahead, and what a recovery does about it.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Cluster, Node, TTL, key, seconds, simulate};
use etcd_kv::{MetadataStore, PutRequest};
use etcd_mock::{MockStore, Options};
use lock_spi::{
    Effect, Error, ErrorKind, FencingToken, InsertOutcome, LockStore, Queue, RecoverRequest,
    Recovery, RecoveryId, Result,
};

async fn refused(node: &Node, session: lock_spi::SessionId, text: &str) -> Error {
    let outcome = node
        .insert(session, text, node.attempt(), Queue::Never)
        .await;
    outcome.unwrap_err()
}

/// Takes the cluster back to before everything that happens between the two calls.
async fn grants_until(cluster: &Cluster, node: &Node, count: usize) -> FencingToken {
    let session = node.session().await;
    let mut last = None;
    for _ in 0..count {
        let (grant, _) = node.take(session, "busy").await;
        assert!(
            node.store
                .delete_if_owner(&key("busy"), grant.token)
                .await
                .unwrap()
        );
        last = Some(grant.token);
    }
    assert!(cluster.server.revision() > 0);
    last.unwrap()
}

fn recovery(node: &Node, hold_off: Duration) -> RecoverRequest {
    RecoverRequest {
        id: RecoveryId::random(&*node.runtime),
        above: None,
        hold_off,
    }
}

/// B83, B149: a cluster restored from a backup is found out by whoever knew it before.
#[test]
fn a_cluster_that_went_back_grants_nothing_and_everybody_is_told() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let backup = cluster.server.snapshot();
        let highest = grants_until(&cluster, &node, 10).await;
        cluster.server.restore(&backup);
        let error = refused(&node, session, "k").await;
        assert_eq!(error.kind(), ErrorKind::FloorViolated, "{error}");
        let violation = error.floor_violation().unwrap();
        assert!(violation.floor > highest && violation.token < highest);
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        let meta = cluster.stored("meta").unwrap();
        let meta = String::from_utf8(meta.value.to_vec()).unwrap();
        assert!(
            meta.contains(&format!("\"watermark\":\"{}\"", violation.floor)),
            "{meta}"
        );
        // Renewals are refused as well: all guards are lost.
        let error = node.keep(session, &[], &[]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FloorViolated);
        Ok(())
    });
}

#[test]
fn who_comes_later_is_held_off_by_the_watermark() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let backup = cluster.server.snapshot();
        grants_until(&cluster, &node, 30).await;
        cluster.server.restore(&backup);
        let error = node.open(lock_spi::SessionId::random(&*node.runtime)).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::FloorViolated);
        let newcomer = cluster.node().await;
        let session = newcomer.session().await;
        let error = refused(&newcomer, session, "k").await;
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::FloorViolated, Effect::None)
        );
        assert_eq!(cluster.names("lock/"), Vec::<String>::new(), "undone");
        Ok(())
    });
}

#[test]
fn a_recovery_lifts_what_going_back_forbade() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let backup = cluster.server.snapshot();
        let highest = grants_until(&cluster, &node, 10).await;
        cluster.server.restore(&backup);
        let lost = lock_spi::SessionId::random(&*node.runtime);
        assert!(node.open(lost).await.is_err());
        let admin = node.store.admin().unwrap();
        let request = recovery(&node, seconds(30));
        let begun = admin.recover(request.clone()).await?;
        assert!(!begun.closed_for.is_zero());
        let error = node.open(lost).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unavailable, Effect::None)
        );
        cluster.sleep(begun.closed_for).await;
        let closed_for = Duration::ZERO;
        let term = begun.term;
        assert_eq!(admin.recover(request).await?, Recovery { term, closed_for });
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        assert!(grant.token > highest);
        assert_eq!(grant.token.term(), term);
        Ok(())
    });
}

#[test]
fn a_stale_answer_is_an_error_and_no_violation() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        node.kv.lag(2);
        let error = node.store.extend(&key("k"), grant.token).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unavailable, Effect::Unknown)
        );
        assert!(node.store.extend(&key("k"), grant.token).await?.is_some());
        Ok(())
    });
}

/// A token of a term that is over names nothing, even where its counter fits a standing grant.
#[test]
fn tokens_of_an_earlier_term_have_ended() {
    simulate(async |cluster| {
        let (node, other) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let (old, attempt) = node.take(session, "k").await;
        let admin = other.store.admin().unwrap();
        let recovered = admin.recover(recovery(&other, Duration::ZERO)).await?;
        assert!(recovered.closed_for.is_zero());
        assert_eq!(node.store.extend(&key("k"), old.token).await?, None);
        assert_eq!(node.keep(session, &[&old], &[attempt]).await?, None);
        let session = other.session().await;
        let (new, _) = other.take(session, "k").await;
        let disguised = FencingToken::from_parts(old.token.term(), new.token.counter()).unwrap();
        for store in [&node.store, &other.store] {
            assert!(!store.delete_if_owner(&key("k"), disguised).await?);
            assert_eq!(store.extend(&key("k"), disguised).await?, None);
        }
        assert_eq!(other.holder("k").await, Some(new.token));
        cluster.assert_all_leased();
        Ok(())
    });
}

/// Whatever was sent before a recovery fails on the state of the namespace.
#[test]
fn a_request_from_before_a_recovery_does_nothing_after_it() {
    simulate(async |cluster| {
        let (node, other) = (cluster.node_with_postman().await, cluster.node().await);
        let session = node.session().await;
        node.kv.next(&[common::Order::Keep, common::Order::Keep]);
        let attempt = node.attempt();
        assert!(
            node.insert(session, "k", attempt, Queue::Never)
                .await
                .is_err()
        );
        let admin = other.store.admin().unwrap();
        admin.recover(recovery(&other, Duration::ZERO)).await?;
        assert_eq!(node.kv.deliver().await, 0);
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_copy_in_another_cluster_grants_nothing_until_it_is_recovered() {
    simulate(async |cluster| {
        cluster.node().await;
        let options = Options::embedded().with_cluster_id(99);
        let copy =
            MockStore::in_step_with_options(std::sync::Arc::clone(&cluster.runtime), options);
        for kv in cluster.server.entries() {
            copy.put(PutRequest::new(kv.key, kv.value)).await.unwrap();
        }
        let node = cluster.node_on(copy).await;
        let session = lock_spi::SessionId::random(&*node.runtime);
        let error = node.open(session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FloorViolated);
        let admin = node.store.admin().unwrap();
        let findings = admin.diagnose().await?;
        assert!(findings.iter().any(|finding| finding.id == "other_cluster"));
        let request = RecoverRequest {
            id: RecoveryId::from_u128(1),
            above: None,
            hold_off: Duration::ZERO,
        };
        admin.recover(request).await?;
        node.open(session).await?;
        node.take(session, "k").await;
        assert_eq!(admin.diagnose().await?, []);
        Ok(())
    });
}

async fn raise_floor(cluster: &Cluster, text: &str, floor: FencingToken) {
    let name = format!("/dlock/default/floor/{text}");
    let value = format!("{:020}", floor.as_u64());
    let put = PutRequest::new(name, value);
    cluster.server.put(put).await.unwrap();
}

#[test]
fn a_floor_above_the_counter_is_told_and_nothing_is_held() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (before, _) = node.take(session, "other").await;
        let floor = FencingToken::new(before.token.as_u64() + 20).unwrap();
        raise_floor(&cluster, "k", floor).await;
        let error = refused(&node, session, "k").await;
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::FloorViolated, Effect::None)
        );
        let violation = error.floor_violation().unwrap();
        assert_eq!(violation.floor, floor);
        assert!(violation.token > before.token && violation.token < floor);
        assert_eq!(cluster.names("lock/"), ["other"]);
        node.take(session, "third").await;
        grants_until(&cluster, &node, 10).await;
        let (after, _) = node.take(session, "k").await;
        assert!(after.token > floor);
        Ok(())
    });
}

/// The undoing of a grant below its floor goes on in the background when it has no answer.
#[test]
fn a_grant_below_its_floor_does_not_stand_even_when_its_undoing_is_lost() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        raise_floor(&cluster, "k", FencingToken::new(1000).unwrap()).await;
        node.kv.next(&[common::Order::Pass, common::Order::Keep]);
        let attempt = node.attempt();
        let outcome: Result<InsertOutcome> = node.insert(session, "k", attempt, Queue::Never).await;
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::FloorViolated, Effect::Unknown)
        );
        cluster.sleep(TTL / 5).await;
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        Ok(())
    });
}
