//! What nobody accounts for is ended at the next renewal, and nothing else is.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Cluster, Node, Order, key, simulate};
use etcd_kv::{DeleteRequest, LeaseId, MetadataStore, PutRequest};
use futures_util::future::join;
use lock_spi::{
    AttemptId, Effect, Gone, GoneReason, InsertOutcome, LockStore, Owner, Queue, Reason,
    RevokeTarget, SessionId,
};

/// Writes a copy of a stored lock as another attempt's, as a proxy that repeats a request might.
async fn plant_ghost(cluster: &Cluster, session: SessionId, from: &str, to: &str, own: AttemptId) {
    let lock = cluster.stored(&format!("lock/{from}")).unwrap();
    let text = String::from_utf8(lock.value.to_vec()).unwrap();
    let ghost = AttemptId::from_u128(0xdead);
    let value = text.replace(&own.to_string(), &ghost.to_string());
    let name = format!("/dlock/default/lock/{to}");
    let put = PutRequest::new(name, value).with_lease(LeaseId(session.as_i64()));
    cluster.server.put(put).await.unwrap();
}

#[test]
fn a_ghost_is_ended_by_the_next_renewal() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        plant_ghost(&cluster, session, "k", "ghost", attempt).await;
        let kept = node.keep(session, &[&grant], &[attempt]).await?.unwrap();
        assert_eq!(kept.gone, []);
        assert_eq!(cluster.names("lock/"), ["k"]);
        Ok(())
    });
}

#[test]
fn a_place_nobody_accounts_for_is_ended_and_listed_ones_stay() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        let (_, given_up) = node.queue(session, "k").await;
        let (_, waits) = node.queue(session, "k").await;
        node.keep(session, &[&grant], &[attempt, waits])
            .await?
            .unwrap();
        assert_eq!(cluster.names("wait/k/"), [waits.to_string()]);
        let outcome = node.insert(session, "k", given_up, Queue::Join).await?;
        assert_eq!(outcome, InsertOutcome::Ended);
        Ok(())
    });
}

/// An acquire that was dropped after its grant leaves nothing beyond the next renewal.
#[test]
fn a_grant_nobody_accounts_for_is_ended_for_good() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (_, attempt) = node.take(session, "k").await;
        node.keep(session, &[], &[]).await?.unwrap();
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        let outcome = node.insert(session, "k", attempt, Queue::Never).await?;
        assert_eq!(outcome, InsertOutcome::Ended);
        node.take(session, "k").await;
        Ok(())
    });
}

/// Otherwise the release would find nothing, and say that the grant had been gone.
#[test]
fn a_grant_whose_release_is_under_way_is_left_to_it() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        node.kv.next(&[Order::Keep]);
        let release = node.store.delete_if_owner(&grant.key, grant.token);
        let renewal = async {
            node.keep(session, &[], &[attempt]).await.unwrap();
            cluster.names("lock/")
        };
        let (released, left) = join(release, renewal).await;
        assert_eq!(left, ["k"]);
        assert_eq!(released.unwrap_err().effect(), Effect::Unknown);
        // Nobody is at it any more.
        node.keep(session, &[], &[attempt]).await?.unwrap();
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_ticket_of_a_granted_attempt_is_surplus_and_its_grant_is_not() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        let name = format!("/dlock/default/wait/k/{attempt}");
        let put = PutRequest::new(name, "{}").with_lease(LeaseId(session.as_i64()));
        cluster.server.put(put).await.unwrap();
        let kept = node.keep(session, &[&grant], &[attempt]).await?.unwrap();
        assert_eq!(kept.gone, []);
        assert_eq!(cluster.names("wait/"), Vec::<String>::new());
        assert_eq!(node.holder("k").await, Some(grant.token));
        Ok(())
    });
}

async fn revoke(node: &Node, text: &str) {
    let request = node.revoke_request(text, RevokeTarget::Whoever);
    assert!(node.store.revoke(request).await.unwrap().revoked);
}

#[test]
fn exactly_the_missing_grants_are_named_with_how_they_ended() {
    simulate(async |cluster| {
        let (node, admin) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let (stays, one) = node.take(session, "stays").await;
        let (revoked, two) = node.take(session, "revoked").await;
        let (deleted, three) = node.take(session, "deleted").await;
        revoke(&admin, "revoked").await;
        let raw = DeleteRequest::key("/dlock/default/lock/deleted");
        cluster.server.delete(raw).await.unwrap();
        let grants = [&stays, &revoked, &deleted];
        let kept = node.keep(session, &grants, &[one, two, three]).await?;
        let kept = kept.unwrap();
        let by = Owner::new("admin").unwrap();
        let reason = Reason::new("stuck").unwrap();
        let gone = |text: &str, token, why| Gone {
            key: key(text),
            token,
            why,
        };
        let expected = [
            gone("revoked", revoked.token, GoneReason::Revoked { by, reason }),
            gone("deleted", deleted.token, GoneReason::Ended),
        ];
        assert_eq!(kept.gone, expected);
        assert_eq!(cluster.names("lock/"), ["stays"]);
        Ok(())
    });
}

/// The key is held again by the same session: the old grant is gone all the same.
#[test]
fn a_grant_whose_key_was_granted_anew_to_its_session_is_gone() {
    simulate(async |cluster| {
        let (node, admin) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let (old, one) = node.take(session, "k").await;
        revoke(&admin, "k").await;
        let (new, two) = node.take(session, "k").await;
        let kept = node
            .keep(session, &[&old, &new], &[one, two])
            .await?
            .unwrap();
        let gone: Vec<_> = kept.gone.iter().map(|gone| gone.token).collect();
        assert_eq!(gone, [old.token]);
        assert_eq!(node.holder("k").await, Some(new.token));
        Ok(())
    });
}

/// A lock that somebody else holds is not this session's to judge.
#[test]
fn a_lost_key_that_somebody_else_holds_is_left_alone() {
    simulate(async |cluster| {
        let (node, other) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let (lost, attempt) = node.take(session, "k").await;
        revoke(&other, "k").await;
        let theirs = other.session().await;
        let (new, _) = other.take(theirs, "k").await;
        let kept = node.keep(session, &[&lost], &[attempt]).await?.unwrap();
        assert_eq!(kept.gone.len(), 1);
        assert_eq!(node.holder("k").await, Some(new.token));
        Ok(())
    });
}
