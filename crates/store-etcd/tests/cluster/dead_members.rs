//! Members that are down.

use lock_spi::{ErrorKind, LockStore, Queue};

use crate::common::seconds;
use crate::live::until::until;
use crate::stage::{LONG, Stage, insist, open, release};

/// So many rounds of four operations, by each of two nodes.
const ROUNDS: usize = 25;

#[tokio::test]
async fn while_one_of_three_members_is_dead_every_operation_succeeds() {
    let mut stage = Stage::new();
    let (dead, [a, b]) = stage.roles();
    let before = stage.node(&[dead, a, b]).await;
    let session = open(&before, LONG).await;
    stage.etcd.kill(dead).unwrap();
    stage.etcd.await_ready().unwrap();
    let kept = before.keep(session, &[], &[]).await.unwrap();
    assert!(kept.is_some(), "whoever knew only the dead one goes on");

    let after = stage.node(&[dead, a, b]).await;
    let other = open(&after, LONG).await;
    let mut last = None;
    for (node, session) in [(&before, session), (&after, other)] {
        for _ in 0..ROUNDS {
            let (grant, _) = node.take(session, "k").await;
            assert!(Some(grant.token) > last, "tokens rise");
            last = Some(grant.token);
            let extended = node.store.extend(&grant.key, grant.token).await;
            assert_eq!(extended.unwrap().unwrap().token, grant.token);
            assert_eq!(node.holder("k").await, Some(grant.token));
            let released = node.store.delete_if_owner(&grant.key, grant.token).await;
            assert!(released.unwrap());
        }
    }
}

#[tokio::test]
async fn without_a_majority_nothing_is_decided_and_sessions_outlive_it() {
    let mut stage = Stage::new();
    let (leader, [follower, left]) = stage.roles();
    let node = stage.node(&[leader, follower, left]).await;
    let session = open(&node, LONG).await;
    let (grant, attempt) = node.take(session, "k").await;
    // What it would read alone must have reached the one that is left.
    let alone = stage.node(&[left]).await;
    for dead in [leader, follower] {
        stage.etcd.kill(dead).unwrap();
    }

    let undecided = async |what: &str, kind| {
        let begun = node.runtime.now();
        let told = match what {
            "extend" => node.store.extend(&grant.key, grant.token).await.map(drop),
            "keep" => node.keep(session, &[&grant], &[attempt]).await.map(drop),
            _ => {
                let insert = node.insert(session, "other", node.attempt(), Queue::Join);
                insert.await.map(drop)
            }
        };
        let took = node.runtime.now().saturating_since(begun);
        let error = told.expect_err(what);
        assert!(took < seconds(5), "{what} took {took:?}");
        let kinds = [ErrorKind::NotLeader, ErrorKind::Unavailable];
        assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
        kind == Some(error.kind())
    };
    for what in ["extend", "keep", "insert"] {
        undecided(what, None).await;
    }
    until("the one that is left knows no leader", async || {
        undecided("extend", Some(ErrorKind::NotLeader))
            .await
            .then_some(())
    })
    .await;
    assert_eq!(
        alone.holder("k").await,
        Some(grant.token),
        "as it last knew"
    );

    for dead in [leader, follower] {
        stage.etcd.restart(dead).unwrap();
    }
    let extend = async || node.store.extend(&grant.key, grant.token).await;
    let extended = insist("an extend", extend).await;
    assert_eq!(extended.unwrap().token, grant.token);
    let stored = stage.stored(&[0, 1, 2]).await;
    let lock = stored.at("lock/k").await.expect("the lock");
    assert_eq!(lock.lease.unwrap().0, session.as_i64());
    release(&node, &grant).await;
}
