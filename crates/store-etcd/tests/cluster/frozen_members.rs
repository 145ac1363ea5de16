//! Members whose processes stand still while requests to them are under way.

use lock_spi::{Effect, InsertOutcome, LockStore, Queue};

use crate::common::{granted, key};
use crate::stage::{
    LONG, Stage, assert_stays_free, assert_transient, insist, insist_on, open, release,
};

/// Each begins with another leader, as it happens.
const ROUNDS: usize = 3;

#[tokio::test]
async fn an_insert_that_froze_leaves_nothing_once_it_is_abandoned() {
    let stage = Stage::new();
    let stored = stage.stored(&[0, 1, 2]).await;
    for round in 0..ROUNDS {
        let (leader, followers) = stage.roles();
        // By way of the leader, whose log has it, or of a follower, which passes it on later.
        let by = if round == 1 { followers[0] } else { leader };
        let node = stage.node(&[by]).await;
        let session = open(&node, LONG).await;
        let attempt = node.attempt();
        for follower in followers {
            stage.etcd.pause(follower).unwrap();
        }
        let insert = node.insert(session, "k", attempt, Queue::Never).await;
        let frozen = insert.expect_err("no majority agrees");
        assert_transient(&frozen);
        assert_eq!(frozen.effect(), Effect::Unknown);
        if round == 2 {
            let abandoned = node.store.abandon(&key("k"), session, attempt).await;
            assert_transient(&abandoned.expect_err("no majority agrees"));
        }
        for follower in followers {
            stage.etcd.resume(follower).unwrap();
        }
        let abandon = async || node.store.abandon(&key("k"), session, attempt).await;
        insist("an abandon", abandon).await;
        assert_stays_free(&stored, "lock/").await;

        let again = async || node.insert(session, "k", attempt, Queue::Never).await;
        assert_eq!(insist("an answer", again).await, InsertOutcome::Ended);
        let grant = granted(insist_on(&node, session, "k").await);
        release(&node, &grant).await;
    }
}
