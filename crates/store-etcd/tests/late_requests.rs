//! Requests and replies that are lost on the way, or arrive when they are no longer wanted.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Node, Order, Postman, granted, key, queued, seconds, simulate};
use std::time::Duration;

use lock_spi::{
    Effect, ErrorKind, InsertOutcome, LockStore, Queue, Result, RevokeTarget, SessionId,
};

/// Two writing transactions that nobody hears of, the second being the bump that would settle the
/// first: the call ends without an answer.
const KEEP_AND_LOSE_THE_BUMP: &[Order] = &[Order::Keep, Order::Keep];

/// An insert whose request is kept on the way, and that ends with an unknown effect.
async fn insert_in_vain(
    node: &Node<Postman>,
    session: SessionId,
    queue: Queue,
) -> lock_spi::AttemptId {
    node.kv.next(KEEP_AND_LOSE_THE_BUMP);
    let attempt = node.attempt();
    let error = node.insert(session, "k", attempt, queue).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unavailable, Effect::Unknown)
    );
    attempt
}

#[test]
fn a_grant_that_arrives_after_its_abandon_does_nothing() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let attempt = insert_in_vain(&node, session, Queue::Never).await;
        node.store.abandon(&key("k"), session, attempt).await?;
        assert_eq!(node.kv.deliver().await, 1, "the bump alone may succeed");
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        let again = node.insert(session, "k", attempt, Queue::Never).await?;
        assert_eq!(again, InsertOutcome::Ended);
        node.take(session, "k").await;
        Ok(())
    });
}

#[test]
fn a_place_that_arrives_after_its_abandon_does_not_stand() {
    simulate(async |cluster| {
        let (holder, node) = (cluster.node().await, cluster.node_with_postman().await);
        let session = holder.session().await;
        holder.take(session, "k").await;
        let session = node.session().await;
        // Seen held, so the first writing transaction is the one that queues.
        let seen = node
            .insert(session, "k", node.attempt(), Queue::Never)
            .await?;
        assert!(matches!(seen, InsertOutcome::Held(_)));
        let attempt = insert_in_vain(&node, session, Queue::Join).await;
        node.store.abandon(&key("k"), session, attempt).await?;
        node.kv.deliver().await;
        assert_eq!(cluster.names("wait/"), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_request_that_was_settled_arrives_in_vain() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        node.kv.next(&[Order::Keep]);
        let (grant, _) = node.take(session, "k").await;
        assert!(node.store.delete_if_owner(&key("k"), grant.token).await?);
        assert_eq!(node.kv.deliver().await, 0);
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_session_with_an_unsettled_request_settles_before_the_next_insert() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        insert_in_vain(&node, session, Queue::Never).await;
        let (other, _) = node.take(session, "other").await;
        node.kv.deliver().await;
        assert_eq!(cluster.names("lock/"), ["other"]);
        assert!(
            node.store
                .extend(&key("other"), other.token)
                .await?
                .is_some()
        );
        Ok(())
    });
}

/// B56, B58: whatever the first call did is found.
#[test]
fn a_lost_reply_to_a_grant_is_found_within_the_call() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        node.kv.next(&[Order::LoseReply]);
        let (grant, attempt) = node.take(session, "k").await;
        assert_eq!(node.holder("k").await, Some(grant.token));
        let again = node.insert(session, "k", attempt, Queue::Never).await?;
        assert_eq!(granted(again).token, grant.token);
        Ok(())
    });
}

#[test]
fn a_lost_reply_to_a_grant_and_its_bump_is_found_by_the_next_call() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        node.kv.next(&[Order::LoseReply, Order::LoseReply]);
        let attempt = node.attempt();
        let error = node
            .insert(session, "k", attempt, Queue::Never)
            .await
            .unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown);
        let standing = node.holder("k").await;
        let found = node.insert(session, "k", attempt, Queue::Never).await?;
        assert_eq!(Some(granted(found).token), standing);
        Ok(())
    });
}

#[test]
fn a_lost_reply_to_a_place_keeps_the_place() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        node.take(session, "k").await;
        node.kv.next(&[Order::LoseReply]);
        let (place, attempt) = node.queue(session, "k").await;
        assert_eq!(cluster.names("wait/k/"), [attempt.to_string()]);
        let again = node.insert(session, "k", attempt, Queue::Join).await?;
        assert_eq!(queued(again).position, place.position);
        Ok(())
    });
}

#[test]
fn a_lost_reply_to_a_take_is_found() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        let (_, attempt) = node.queue(session, "k").await;
        assert!(node.store.delete_if_owner(&key("k"), grant.token).await?);
        node.kv.next(&[Order::LoseReply]);
        let taken = granted(node.insert(session, "k", attempt, Queue::Join).await?);
        assert_eq!(node.holder("k").await, Some(taken.token));
        assert_eq!(cluster.names("wait/"), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_take_that_never_arrived_is_sent_again_and_its_late_copy_is_refused() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (first, _) = node.take(session, "k").await;
        let (_, attempt) = node.queue(session, "k").await;
        assert!(node.store.delete_if_owner(&key("k"), first.token).await?);
        node.kv.next(&[Order::Keep]);
        let second = granted(node.insert(session, "k", attempt, Queue::Join).await?);
        assert!(node.store.delete_if_owner(&key("k"), second.token).await?);
        assert_eq!(node.kv.deliver().await, 0);
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        Ok(())
    });
}

/// B01: the repeat of a release whose reply was lost touches no newer grant.
#[test]
fn a_lost_reply_to_a_release_is_an_error_and_its_repeat_false() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (old, _) = node.take(session, "k").await;
        node.kv.next(&[Order::LoseReply]);
        let error = node
            .store
            .delete_if_owner(&key("k"), old.token)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unavailable, Effect::Unknown)
        );
        let (new, _) = node.take(session, "k").await;
        assert!(!node.store.delete_if_owner(&key("k"), old.token).await?);
        assert_eq!(node.holder("k").await, Some(new.token));
        Ok(())
    });
}

/// B59: a release that never arrived is really done by its repeat.
#[test]
fn a_release_that_never_arrived_is_done_by_its_repeat() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        node.kv.next(&[Order::Keep]);
        assert!(
            node.store
                .delete_if_owner(&key("k"), grant.token)
                .await
                .is_err()
        );
        assert!(node.store.delete_if_owner(&key("k"), grant.token).await?);
        assert_eq!(node.kv.deliver().await, 0);
        Ok(())
    });
}

#[test]
fn a_lost_reply_to_an_abandon_is_repeated_until_it_is_known() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        node.take(session, "k").await;
        let (_, attempt) = node.queue(session, "k").await;
        node.kv.next(&[Order::LoseReply]);
        let error = node
            .store
            .abandon(&key("k"), session, attempt)
            .await
            .unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown);
        let late = node.insert(session, "k", attempt, Queue::Join).await?;
        assert_eq!(late, InsertOutcome::Ended, "nothing more is sent for it");
        node.store.abandon(&key("k"), session, attempt).await?;
        assert_eq!(cluster.names("wait/"), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_lost_reply_to_a_revoke_is_found_within_the_call() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        let request = node.revoke_request("k", RevokeTarget::Grant(grant.token));
        node.kv.next(&[Order::LoseReply]);
        let outcome = node.store.revoke(request.clone()).await?;
        assert_eq!(outcome.previous_token, Some(grant.token));
        let (next, _) = node.take(session, "k").await;
        assert_eq!(node.store.revoke(request).await?, outcome);
        assert_eq!(node.holder("k").await, Some(next.token));
        assert_eq!(cluster.names("revocation/k/").len(), 1);
        Ok(())
    });
}

/// The grant was made and revoked before its caller knew of it: the attempt is over.
#[test]
fn a_grant_that_was_revoked_before_its_reply_came_is_not_granted_anew() {
    simulate(async |cluster| {
        let (node, admin) = (cluster.node_with_postman().await, cluster.node().await);
        let session = node.session().await;
        node.kv.next(&[Order::LoseReply, Order::Keep]);
        let attempt = node.attempt();
        assert!(
            node.insert(session, "k", attempt, Queue::Never)
                .await
                .is_err()
        );
        let request = admin.revoke_request("k", RevokeTarget::Whoever);
        assert!(admin.store.revoke(request).await?.revoked);
        let again = node.insert(session, "k", attempt, Queue::Never).await?;
        assert_eq!(again, InsertOutcome::Ended);
        Ok(())
    });
}

#[test]
fn a_session_whose_opening_had_no_answer_is_opened_by_the_repeat() {
    simulate(async |cluster| {
        for order in [Order::LoseReply, Order::Keep] {
            let node = cluster.node_with_postman().await;
            let session = SessionId::random(&*node.runtime);
            node.kv.next(&[order]);
            let error = node.open(session).await.unwrap_err();
            assert_eq!(error.effect(), Effect::Unknown);
            cluster.sleep(seconds(3)).await;
            let lease = node.open(session).await?;
            assert_eq!(lease.remaining, common::TTL, "counted from a renewal");
            node.kv.deliver().await;
            let name = format!("lock/{session}");
            node.take(session, &session.to_string()).await;
            assert!(cluster.stored(&name).is_some());
        }
        Ok(())
    });
}

/// The future of every operation may be dropped; what was begun goes on.
#[test]
fn a_dropped_call_runs_to_its_end() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let attempt = node.attempt();
        let insert = node.insert(session, "k", attempt, Queue::Never);
        let dropped = node.runtime.timeout(Duration::ZERO, insert).await;
        assert!(dropped.is_err());
        cluster.sleep(seconds(1)).await;
        assert_eq!(cluster.names("lock/"), ["k"]);
        let found: Result<_> = node.insert(session, "k", attempt, Queue::Never).await;
        granted(found?);
        Ok(())
    });
}
