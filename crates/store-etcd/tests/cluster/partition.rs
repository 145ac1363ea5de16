//! Members that lose sight of each other while their clients still reach them.

use lock_spi::{Grant, InsertOutcome, LockStore, Queue, SessionId, WaitRequest};
use store_etcd::EtcdClient;
use test_servers::Etcd;

use crate::common::{Node, granted, key, seconds};
use crate::live::until::until;
use crate::stage::{LONG, Stage, assert_transient, insist, insist_on, open, release};

fn stage() -> Stage {
    Stage::with(Etcd::builder().peers_behind_proxies())
}

/// Nothing that decides is answered.
async fn assert_undecided(node: &Node<EtcdClient>, session: SessionId, grant: &Grant) {
    let Grant { key, token, .. } = grant;
    let told = [
        node.store.extend(key, *token).await.map(drop),
        node.store
            .close_session(SessionId::random(&*node.runtime))
            .await,
        node.insert(session, "free", node.attempt(), Queue::Never)
            .await
            .map(drop),
        node.insert(session, "other", node.attempt(), Queue::Never)
            .await
            .map(drop),
        node.insert(session, "other", node.attempt(), Queue::Join)
            .await
            .map(drop),
        node.keep(session, &[grant], &[]).await.map(drop),
    ];
    for told in told {
        assert_transient(&told.expect_err("nobody decides here"));
    }
}

/// What the leader sends is lost, or all that it sends and is sent.
#[tokio::test]
async fn a_leader_that_was_cut_off_tells_nobody_that_a_lock_is_lost_or_held() {
    let stage = stage();
    for hears in [true, false] {
        let (leader, followers) = stage.roles();
        let (pinned, mobile) = (stage.node(&[leader]).await, stage.node(&followers).await);
        let session = open(&pinned, LONG).await;
        let (grant, attempt) = pinned.take(session, "k").await;
        let others = open(&mobile, LONG).await;
        let (old, _) = mobile.take(others, "other").await;
        if hears {
            for follower in followers {
                stage.etcd.cut(leader, follower).unwrap();
            }
        } else {
            stage.etcd.isolate(leader).unwrap();
        }
        assert_undecided(&pinned, session, &grant).await;

        // The majority goes on, and decides otherwise.
        release(&mobile, &old).await;
        let taken = granted(insist_on(&mobile, others, "free").await);
        assert_undecided(&pinned, session, &grant).await;
        let free = pinned.store.delete_if_owner(&taken.key, taken.token).await;
        assert_transient(&free.expect_err("nobody decides here"));

        stage.etcd.heal().unwrap();
        let keep = async || pinned.keep(session, &[&grant], &[attempt]).await;
        let kept = insist("a renewal", keep).await.expect("the session stands");
        assert_eq!(kept.gone, []);
        let extend = async || pinned.store.extend(&grant.key, grant.token).await;
        assert_eq!(
            insist("an extend", extend).await.unwrap().token,
            grant.token
        );
        let held = insist_on(&pinned, session, "free").await;
        let InsertOutcome::Held(Some(holder)) = held else {
            panic!("{held:?}");
        };
        assert_eq!(holder.token, taken.token);
        for (node, grant) in [(&pinned, &grant), (&mobile, &taken)] {
            release(node, grant).await;
        }
    }
}

#[tokio::test]
async fn a_client_of_a_leader_that_was_cut_off_goes_on_elsewhere() {
    let stage = stage();
    let (leader, [a, b]) = stage.roles();
    let node = stage.node(&[leader, a, b]).await;
    let session = open(&node, LONG).await;
    let (grant, _) = node.take(session, "k").await;
    stage.etcd.isolate(leader).unwrap();
    let extend = async || node.store.extend(&grant.key, grant.token).await;
    assert!(insist("an extend", extend).await.is_some());
    release(&node, &grant).await;
    assert!(granted(insist_on(&node, session, "k").await).token > grant.token);
}

/// Its watch hears nothing of what the majority does.
#[tokio::test]
async fn a_waiter_at_a_member_that_was_cut_off_does_not_sleep_on() {
    let stage = stage();
    let (leader, [minority, other]) = stage.roles();
    let holder = stage.node(&[leader, other]).await;
    let holding = open(&holder, LONG).await;
    // One knows only that member, the other begins with it.
    let waiters = [
        stage.node(&[minority]).await,
        stage.node(&[minority, leader, other]).await,
    ];
    for waiter in waiters {
        let session = open(&waiter, LONG).await;
        let (grant, _) = holder.take(holding, "k").await;
        let (place, attempt) = waiter.queue(session, "k").await;
        let store = waiter.store.clone();
        let wait = waiter.runtime.run_to_end(async move {
            let request = WaitRequest {
                key: key("k"),
                session,
                attempt,
                place: Some(place),
            };
            store.await_release(request).await
        });
        // For its watches to stand.
        waiter.runtime.sleep(seconds(1)).await;
        stage.etcd.isolate(minority).unwrap();
        release(&holder, &grant).await;

        let woken = waiter.runtime.timeout(seconds(30), wait).await;
        woken.expect("it wakes").unwrap().unwrap();
        let knows_others = waiter.insert(session, "k", attempt, Queue::Join);
        let outcome = knows_others.await;
        stage.etcd.heal().unwrap();
        let next = match outcome {
            Ok(outcome) => granted(outcome),
            Err(error) => {
                assert_transient(&error);
                let insert = async || waiter.insert(session, "k", attempt, Queue::Join).await;
                granted(insist("a grant", insert).await)
            }
        };
        assert!(next.token > grant.token);
        release(&waiter, &next).await;
        until("the member is back", async || stage.etcd.await_ready().ok()).await;
    }
}
