//! Waiting in line, and those who do not take their turn.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Node, granted, key, queued, seconds, simulate};
use etcd_kv::{DeleteRequest, MetadataStore};
use lock_spi::{
    AttemptId, InsertOutcome, Joined, LockStore, Place, Queue, Result, SessionId, WaitRequest,
};
use sim_runtime::Faulty;

/// A wait on a task of its own.
fn wait(
    node: &Node,
    session: SessionId,
    attempt: AttemptId,
    place: Option<Place>,
) -> Joined<Result<()>> {
    let (store, key) = (node.store.clone(), key("k"));
    node.runtime.run_to_end(async move {
        let request = WaitRequest {
            key,
            session,
            attempt,
            place,
        };
        store.await_release(request).await
    })
}

async fn woken(node: &Node, wait: &mut Joined<Result<()>>, within: Duration) -> bool {
    let runtime = Arc::clone(&node.runtime);
    match runtime.timeout(within, wait).await {
        Ok(ended) => ended.unwrap().is_ok(),
        Err(_) => false,
    }
}

/// A head that does not take its turn is skipped after 12 s, not before, and is told.
#[test]
fn a_dead_head_is_skipped_after_its_time_and_not_before() {
    simulate(async |cluster| {
        let (node, dead) = (cluster.node().await, cluster.node().await);
        let (session, other) = (node.session().await, dead.session().await);
        let (held, _) = node.take(session, "k").await;
        let (_, head) = dead.queue(other, "k").await;
        let (_, second) = node.queue(session, "k").await;
        assert!(node.store.delete_if_owner(&key("k"), held.token).await?);
        for look in 0..6 {
            let outcome = node.insert(session, "k", second, Queue::Join).await?;
            assert_eq!(queued(outcome).ahead, Some(1), "after {} s", 2 * look);
            cluster.sleep(seconds(2)).await;
            node.keep(session, &[], &[second]).await?;
            dead.keep(other, &[], &[head]).await?;
        }
        let taken = granted(node.insert(session, "k", second, Queue::Join).await?);
        assert_eq!(node.holder("k").await, Some(taken.token));
        assert_eq!(cluster.names("wait/"), Vec::<String>::new());
        let skipped = dead.insert(other, "k", head, Queue::Join).await?;
        assert_eq!(skipped, InsertOutcome::Ended);
        Ok(())
    });
}

/// Two dead places have twice the time, and one more who is alive in between is not skipped.
#[test]
fn each_place_ahead_has_its_own_time() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (held, _) = node.take(session, "k").await;
        let dead = [
            node.queue(session, "k").await.1,
            node.queue(session, "k").await.1,
        ];
        let (_, third) = node.queue(session, "k").await;
        let all = [dead[0], dead[1], third];
        assert!(node.store.delete_if_owner(&key("k"), held.token).await?);
        let mut waited = Duration::ZERO;
        while let InsertOutcome::Queued(_) = node.insert(session, "k", third, Queue::Join).await? {
            cluster.sleep(seconds(2)).await;
            waited += seconds(2);
            node.keep(session, &[], &all).await?;
        }
        assert_eq!(waited, seconds(24));
        for attempt in dead {
            let outcome = node.insert(session, "k", attempt, Queue::Join).await?;
            assert_eq!(outcome, InsertOutcome::Ended);
        }
        Ok(())
    });
}

#[test]
fn a_key_that_is_held_makes_nobody_late() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (held, first) = node.take(session, "k").await;
        let (_, head) = node.queue(session, "k").await;
        let (_, second) = node.queue(session, "k").await;
        for _ in 0..10 {
            queued(node.insert(session, "k", second, Queue::Join).await?);
            cluster.sleep(seconds(4)).await;
            node.keep(session, &[&held], &[first, head, second]).await?;
        }
        assert!(node.store.delete_if_owner(&key("k"), held.token).await?);
        queued(node.insert(session, "k", second, Queue::Join).await?);
        granted(node.insert(session, "k", head, Queue::Join).await?);
        Ok(())
    });
}

#[test]
fn each_in_line_is_woken_when_it_is_the_first_and_the_lock_goes() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (held, _) = node.take(session, "k").await;
        let (one, first) = node.queue(session, "k").await;
        let (two, second) = node.queue(session, "k").await;
        let mut waits_first = wait(&node, session, first, Some(one));
        let mut waits_second = wait(&node, session, second, Some(two));
        assert!(!woken(&node, &mut waits_first, seconds(5)).await);
        assert!(node.store.delete_if_owner(&key("k"), held.token).await?);
        assert!(woken(&node, &mut waits_first, Duration::from_millis(1)).await);
        assert!(!woken(&node, &mut waits_second, seconds(1)).await);
        let held = granted(node.insert(session, "k", first, Queue::Join).await?);
        assert!(!woken(&node, &mut waits_second, seconds(1)).await);
        assert!(node.store.delete_if_owner(&key("k"), held.token).await?);
        assert!(woken(&node, &mut waits_second, Duration::from_millis(1)).await);
        assert_eq!(
            cluster.server.open_streams(),
            0,
            "watches end with their wait"
        );
        Ok(())
    });
}

/// Expiry wakes as well, and so does whatever breaks the watch (B76, B79).
#[test]
fn expiry_and_a_broken_watch_wake_up() {
    simulate(async |cluster| {
        let (node, holder) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let theirs = holder.session().await;
        let (held, _) = holder.take(theirs, "k").await;
        let (place, attempt) = node.queue(session, "k").await;
        let mut waits = wait(&node, session, attempt, Some(place.clone()));
        assert!(!woken(&node, &mut waits, seconds(1)).await);
        node.kv.faults().reset_streams();
        assert!(woken(&node, &mut waits, Duration::from_millis(1)).await);
        assert_eq!(holder.holder("k").await, Some(held.token));
        let mut waits = wait(&node, session, attempt, Some(place));
        for _ in 0..3 {
            node.keep(session, &[], &[attempt]).await?.unwrap();
            cluster.sleep(seconds(5)).await;
        }
        assert!(woken(&node, &mut waits, seconds(1)).await);
        Ok(())
    });
}

#[test]
fn who_has_no_place_is_woken_by_the_end_of_the_grant_that_refused_it() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (old, _) = node.take(session, "k").await;
        let attempt = node.attempt();
        let refused = node.insert(session, "k", attempt, Queue::Never).await?;
        assert!(matches!(refused, InsertOutcome::Held(Some(_))));
        let mut waits = wait(&node, session, attempt, None);
        assert!(!woken(&node, &mut waits, seconds(1)).await);
        assert!(node.store.delete_if_owner(&key("k"), old.token).await?);
        assert!(woken(&node, &mut waits, Duration::from_millis(1)).await);
        // It ended before the wait began, and somebody else has the key by now.
        node.take(session, "k").await;
        let mut waits = wait(&node, session, attempt, None);
        assert!(woken(&node, &mut waits, Duration::from_millis(1)).await);
        Ok(())
    });
}

#[test]
fn waiting_writes_nothing_and_its_own_session_ends_it() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let (session, other) = (node.session().await, node.session().await);
        node.take(other, "k").await;
        let (place, attempt) = node.queue(session, "k").await;
        let revision = cluster.server.revision();
        let mut waits = wait(&node, session, attempt, Some(place));
        assert!(!woken(&node, &mut waits, seconds(1)).await);
        assert_eq!(cluster.server.revision(), revision);
        node.store.close_session(session).await?;
        assert!(woken(&node, &mut waits, Duration::from_millis(1)).await);
        Ok(())
    });
}

/// B98: what one release costs does not grow with the number of those who wait.
#[test]
fn one_release_wakes_one_waiter() {
    simulate(async |cluster| {
        let node: Node<Faulty<_>> = cluster.node().await;
        let session = node.session().await;
        let (held, _) = node.take(session, "k").await;
        let mut waits = Vec::new();
        for _ in 0..500 {
            let (place, attempt) = node.queue(session, "k").await;
            waits.push((attempt, wait(&node, session, attempt, Some(place))));
        }
        cluster.sleep(seconds(1)).await;
        let calls = || node.kv.faults().calls().values().sum::<u64>();
        let before = calls();
        assert!(node.store.delete_if_owner(&key("k"), held.token).await?);
        let (first, waits_first) = &mut waits[0];
        assert!(woken(&node, waits_first, seconds(1)).await);
        let held = granted(node.insert(session, "k", *first, Queue::Join).await?);
        assert!(!woken(&node, &mut waits[1].1, seconds(1)).await);
        assert_eq!(
            calls() - before,
            4,
            "DELETE, TAKE, the next one's watch and look"
        );
        assert!(node.store.delete_if_owner(&key("k"), held.token).await?);
        assert!(woken(&node, &mut waits[1].1, seconds(1)).await);
        assert!(!woken(&node, &mut waits[2].1, seconds(1)).await);
        Ok(())
    });
}

/// B68: an operator deletes the entry, and the next grant is a new one.
#[test]
fn a_deleted_entry_wakes_the_first_in_line() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (held, _) = node.take(session, "k").await;
        let (place, attempt) = node.queue(session, "k").await;
        let mut waits = wait(&node, session, attempt, Some(place));
        assert!(!woken(&node, &mut waits, seconds(1)).await);
        let raw = DeleteRequest::key("/dlock/default/lock/k");
        cluster.server.delete(raw).await.unwrap();
        assert!(woken(&node, &mut waits, Duration::from_millis(1)).await);
        let taken = granted(node.insert(session, "k", attempt, Queue::Join).await?);
        assert!(taken.token > held.token);
        let entry = cluster.stored("lock/k").unwrap();
        assert_eq!(entry.create_revision, taken.token.counter().cast_signed());
        Ok(())
    });
}
