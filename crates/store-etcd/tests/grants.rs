//! Grants from the first look to their end.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use common::{TTL, granted, key, seconds, simulate};
use lock_spi::{ErrorKind, InsertOutcome, LockStore, Queue, Result, RevokeTarget, SessionId};

#[test]
fn three_extends_in_a_row_keep_the_token_and_move_the_deadline() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        for _ in 0..3 {
            cluster.sleep(seconds(10)).await;
            let extended = node.store.extend(&key("k"), grant.token).await?.unwrap();
            assert_eq!(extended.token, grant.token);
            assert_eq!(extended.remaining, Some(TTL));
        }
        let stored = cluster.stored("lock/k").unwrap();
        assert_eq!(
            stored.mod_revision, stored.create_revision,
            "never rewritten"
        );
        assert_eq!(stored.mod_revision, grant.token.counter().cast_signed());
        cluster.assert_all_leased();
        Ok(())
    });
}

#[test]
fn a_lease_that_was_killed_out_of_band_is_lost_and_no_error() {
    simulate(async |cluster| {
        use etcd_kv::{LeaseId, MetadataStore};
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        let lease = LeaseId(session.as_i64());
        cluster.server.lease_revoke(lease).await.unwrap();
        assert_eq!(node.store.extend(&key("k"), grant.token).await?, None);
        assert_eq!(node.keep(session, &[&grant], &[attempt]).await?, None);
        assert!(!node.store.delete_if_owner(&key("k"), grant.token).await?);
        Ok(())
    });
}

#[test]
fn a_stale_releaser_touches_nobody_else() {
    simulate(async |cluster| {
        let (stale, next) = (cluster.node().await, cluster.node().await);
        let session = stale.session().await;
        let (old, _) = stale.take(session, "k").await;
        cluster.sleep(TTL).await;
        let session = next.session().await;
        let (new, _) = next.take(session, "k").await;
        assert!(new.token > old.token);
        assert!(!stale.store.delete_if_owner(&key("k"), old.token).await?);
        assert_eq!(next.holder("k").await, Some(new.token));
        assert_eq!(stale.store.extend(&key("k"), old.token).await?, None);
        Ok(())
    });
}

#[test]
fn another_object_may_release_by_the_token_alone() {
    simulate(async |cluster| {
        let (node, other) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        assert!(other.store.extend(&key("k"), grant.token).await?.is_some());
        assert!(other.store.delete_if_owner(&key("k"), grant.token).await?);
        assert!(!other.store.delete_if_owner(&key("k"), grant.token).await?);
        Ok(())
    });
}

#[test]
fn a_revoked_grant_is_gone_and_the_next_is_above_the_floor() {
    simulate(async |cluster| {
        let (node, admin) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        let request = admin.revoke_request("k", RevokeTarget::Whoever);
        let outcome = admin.store.revoke(request.clone()).await?;
        assert!(outcome.revoked);
        assert_eq!(outcome.previous_token, Some(grant.token));
        let floor = outcome.new_token_floor.unwrap();
        assert!(floor > grant.token);
        assert_eq!(admin.store.revoke(request).await?, outcome);
        assert_eq!(node.store.extend(&key("k"), grant.token).await?, None);
        let again = node.insert(session, "k", attempt, Queue::Never).await?;
        assert_eq!(again, InsertOutcome::Ended);
        let (next, _) = node.take(session, "k").await;
        assert!(next.token > floor);
        Ok(())
    });
}

#[test]
fn an_unknown_session_is_refused_as_what_it_is() {
    simulate(async |cluster| {
        let (node, other) = (cluster.node().await, cluster.node().await);
        let nobody = SessionId::random(&*node.runtime);
        let attempt = node.attempt();
        let gone = node.insert(nobody, "k", attempt, Queue::Never).await;
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::SessionGone);
        assert_eq!(node.keep(nobody, &[], &[]).await?, None);
        let session = node.session().await;
        let foreign = other.insert(session, "k", attempt, Queue::Never).await;
        assert_eq!(foreign.unwrap_err().kind(), ErrorKind::InvalidRequest);
        let reopened = other.open(session).await.unwrap_err();
        assert_eq!(reopened.kind(), ErrorKind::InvalidRequest);
        Ok::<_, lock_spi::Error>(())
    });
}

#[test]
fn held_costs_reads_once_the_key_was_seen_held() {
    simulate(async |cluster| {
        let (node, other) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        node.take(session, "k").await;
        let session = other.session().await;
        for _ in 0..5 {
            let outcome = other
                .insert(session, "k", other.attempt(), Queue::Never)
                .await?;
            assert!(matches!(outcome, InsertOutcome::Held(Some(_))));
        }
        let revision = cluster.server.revision();
        let outcome: Result<_> = other
            .insert(session, "k", other.attempt(), Queue::Never)
            .await;
        assert!(matches!(outcome?, InsertOutcome::Held(Some(_))));
        assert_eq!(cluster.server.revision(), revision);
        Ok(())
    });
}

#[test]
fn a_repeat_finds_the_grant_and_another_attempt_is_held() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        let again = node.insert(session, "k", attempt, Queue::Join).await?;
        assert_eq!(granted(again).token, grant.token);
        let other = node
            .insert(session, "k", node.attempt(), Queue::Never)
            .await?;
        assert!(matches!(other, InsertOutcome::Held(Some(_))));
        assert!(node.store.delete_if_owner(&key("k"), grant.token).await?);
        let late = node.insert(session, "k", attempt, Queue::Join).await?;
        assert_eq!(late, InsertOutcome::Ended);
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        Ok(())
    });
}
