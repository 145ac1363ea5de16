//! Attempts whose requests are cut: from the first try to the grant, or to giving up.

use lock_spi::{AttemptId, InsertOutcome, LockStore, Queue, Result, SessionId};

use crate::common::{granted, key, queued};
use crate::live::until::until;
use crate::stage::{Stage, arrives, assert_honest, for_each_cut};
use crate::wire;

/// Asks for a key until there is an outcome.
async fn ask(stage: &Stage, session: SessionId, text: &str, attempt: AttemptId) -> InsertOutcome {
    let insert = async || stage.node.insert(session, text, attempt, Queue::Join).await;
    stage.insist(insert).await
}

/// A renewal that accounts for nothing: what is left of attempts that were given up is ended.
async fn reconcile(stage: &Stage, session: SessionId) {
    let kept = stage.insist(async || stage.node.keep(session, &[], &[]).await);
    assert!(kept.await.unwrap().gone.is_empty());
}

/// B58: a try whose request or answer was lost is granted once, under its attempt, and one release
/// ends that grant.
#[tokio::test]
async fn a_cut_try_is_granted_once() {
    for_each_cut(async |stage, cut| {
        let (session, attempt) = (stage.session().await, stage.node.attempt());
        let try_it = stage.node.insert(session, "k", attempt, Queue::Never);
        let told = stage.cut((cut, wire::granting(attempt)), try_it).await;
        assert_honest(&told, arrives(cut));
        let grant = granted(ask(stage, session, "k", attempt).await);
        if let Ok(told) = told {
            assert_eq!(granted(told).token, grant.token);
        }
        stage.stands(&grant).await;
        assert_eq!(
            granted(ask(stage, session, "k", attempt).await).token,
            grant.token
        );
        let keep = async || stage.node.keep(session, &[&grant], &[attempt]).await;
        assert!(stage.insist(keep).await.unwrap().gone.is_empty());
        stage.stands(&grant).await;

        let release = async || (stage.node.store.delete_if_owner(&grant.key, grant.token)).await;
        assert!(stage.insist(release).await);
        assert_eq!(stage.names("lock/").await, [""; 0]);
        stage.next_is_above("k", grant.token).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// B46: the same for a place in the queue, which is then taken in its turn.
#[tokio::test]
async fn a_cut_try_takes_one_place() {
    for_each_cut(async |stage, cut| {
        let (session, attempt) = (stage.session().await, stage.node.attempt());
        let holder = stage.others("k").await;
        // Seen held, the key is looked at before a place is taken.
        let refused = stage.node.attempt();
        let refused = async || stage.node.insert(session, "k", refused, Queue::Never).await;
        assert!(matches!(
            stage.insist(refused).await,
            InsertOutcome::Held(_)
        ));

        let join = stage.node.insert(session, "k", attempt, Queue::Join);
        let told = stage.cut((cut, wire::queueing(session)), join).await;
        assert_honest(&told, arrives(cut));
        let place = queued(ask(stage, session, "k", attempt).await);
        if let Ok(told) = told {
            assert_eq!(queued(told).position, place.position);
        }
        assert_eq!(stage.names("wait/k/").await, [attempt.to_string()]);
        let ticket = stage.stored.at(&format!("wait/k/{attempt}")).await.unwrap();
        assert_eq!(ticket.create_revision.unsigned_abs(), place.position);

        stage.others_ends(&holder).await;
        let grant = granted(ask(stage, session, "k", attempt).await);
        assert!(grant.token > holder.token);
        assert_eq!(stage.names("wait/").await, [""; 0]);
        stage.stands(&grant).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// The turn of a waiter that is cut is taken once.
#[tokio::test]
async fn a_cut_turn_is_taken_once() {
    for_each_cut(async |stage, cut| {
        let (session, attempt) = (stage.session().await, stage.node.attempt());
        let holder = stage.others("k").await;
        queued(ask(stage, session, "k", attempt).await);
        stage.others_ends(&holder).await;
        let turn = stage.node.insert(session, "k", attempt, Queue::Join);
        let told = stage.cut((cut, wire::granting(attempt)), turn).await;
        assert_honest(&told, arrives(cut));
        let grant = granted(ask(stage, session, "k", attempt).await);
        if let Ok(told) = told {
            assert_eq!(granted(told).token, grant.token);
        }
        assert!(grant.token > holder.token);
        assert_eq!(stage.names("wait/").await, [""; 0]);
        stage.stands(&grant).await;
        stage.nothing_is_left_of(session).await;
        stage.next_is_above("k", grant.token).await;
    })
    .await;
}

/// B38, B46: whoever gives up after a cut leaves nothing that one renewal does not end, and is never
/// granted.
#[tokio::test]
async fn a_cut_try_that_is_given_up_leaves_no_ghost() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        let holder = stage.others("held").await;
        let refused = stage.node.attempt();
        let refused = async || {
            stage
                .node
                .insert(session, "held", refused, Queue::Never)
                .await
        };
        assert!(matches!(
            stage.insist(refused).await,
            InsertOutcome::Held(_)
        ));

        let (first, second) = (stage.node.attempt(), stage.node.attempt());
        let try_it = stage.node.insert(session, "free", first, Queue::Never);
        let granted_told = stage.cut((cut, wire::granting(first)), try_it).await;
        let join = stage.node.insert(session, "held", second, Queue::Join);
        let queued_told = stage.cut((cut, wire::queueing(session)), join).await;
        for told in [granted_told, queued_told] {
            assert_honest(&told, arrives(cut));
        }
        if arrives(cut) {
            until("both have arrived", async || {
                let names = [stage.names("lock/").await, stage.names("wait/").await];
                (names.concat().len() == 3).then_some(())
            })
            .await;
        }
        reconcile(stage, session).await;
        // A place goes with its renewal, and whatever still travels has nothing to compare with.
        assert_eq!(stage.names("lock/").await, ["held"]);
        assert_eq!(stage.names("wait/").await, [""; 0]);
        stage.others_ends(&holder).await;
        let again = stage.others("free").await;
        stage.stands(&again).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// B38: whoever abandons after a cut is granted nothing any more, whatever the server was still to
/// get.
#[tokio::test]
async fn a_cut_try_that_is_abandoned_is_over() {
    for_each_cut(async |stage, cut| {
        let (session, attempt) = (stage.session().await, stage.node.attempt());
        let try_it = stage.node.insert(session, "k", attempt, Queue::Never);
        let told = stage.cut((cut, wire::granting(attempt)), try_it).await;
        assert_honest(&told, arrives(cut));
        let named = key("k");
        let abandon = async || stage.node.store.abandon(&named, session, attempt).await;
        stage.insist(abandon).await;
        assert_eq!(stage.names("lock/").await, [""; 0]);
        let over = ask(stage, session, "k", attempt).await;
        assert_eq!(over, InsertOutcome::Ended);
        let (next, _) = stage.own(session, "k").await;
        stage.stands(&next).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// B38: an abandon that is cut is repeated; then the attempt has nothing, of whatever it had, and
/// never will.
#[tokio::test]
async fn a_cut_abandon_is_repeated() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        let holder = stage.others("held").await;
        let (waits, holds, unknown) = (
            stage.node.attempt(),
            stage.own(session, "own").await.1,
            stage.node.attempt(),
        );
        queued(ask(stage, session, "held", waits).await);
        for (text, attempt) in [("held", waits), ("own", holds), ("nothing", unknown)] {
            let named = key(text);
            let abandon = || stage.node.store.abandon(&named, session, attempt);
            let ticket = format!("wait/{text}/{attempt}").into_bytes();
            let told: Result<()> = stage.cut((cut, ticket), abandon()).await;
            assert_honest(&told, true);
            stage.insist(async || abandon().await).await;
            let over = ask(stage, session, text, attempt).await;
            assert_eq!(over, InsertOutcome::Ended);
        }
        assert_eq!(stage.names("lock/").await, ["held"]);
        assert_eq!(stage.names("wait/").await, [""; 0]);
        stage.stands(&holder).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}
