//! Any future may be dropped at any point: what was begun runs to its end, and nothing unexplained
//! is left.

use std::ops::Range;

use lock_spi::{InsertOutcome, LockKey, PageRequest, Queue, RevokeTarget, Ttl};

use crate::scenario::{Stop, Verdict};
use crate::scene::Scene;
use crate::session::Session;

/// After how many polls a future is dropped, at most: more than any operation needs to be done.
const POLLS: Range<usize> = 0..64;

/// Renews the session, giving up all that it has, and checks that nothing is left but so many
/// sessions.
async fn gives_up(scene: &Scene, session: &Session, sessions: usize) -> Result<(), Stop> {
    scene.settle().await;
    assert!(session.keep_alive(&[], &[]).await?.is_some());
    scene.nothing_is_left_but(sessions).await
}

/// ALL-1, KEEP-3, B38, B172: an insert dropped at any point leaves nothing beyond the next renewal
/// that does not list it.
pub(crate) async fn a_dropped_insert_leaves_nothing(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    for polls in POLLS {
        let key = LockKey::new(format!("after {polls}"))?;
        let insert = session.insert(&key, session.attempt(), Queue::Join);
        let done = scene.drop_after(polls, insert).await;
        gives_up(&scene, &session, 1).await?;
        let holding = session.acquire(&key).await?;
        assert!(holding.release().await?);
        if done {
            return Ok(());
        }
    }
    panic!("an insert is never done");
}

/// ALL-1, KEEP-3, INSERT-7, B46, B172: an insert that queues, dropped at any point, leaves no place
/// behind, and whoever comes next is granted.
pub(crate) async fn a_dropped_place_stands_in_nobodys_way(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (holder, session) = (node.session("holder").await?, node.session("fickle").await?);
    for polls in POLLS {
        let key = LockKey::new(format!("after {polls}"))?;
        let holding = holder.acquire(&key).await?;
        let insert = session.insert(&key, session.attempt(), Queue::Join);
        let done = scene.drop_after(polls, insert).await;
        gives_up(&scene, &session, 3).await?;
        let next = session.enqueue(&key).await?;
        assert!(holding.release().await?);
        assert!(next.take().await?.release().await?);
        if done {
            return Ok(());
        }
    }
    panic!("an insert is never done");
}

/// ALL-1, KEEP-3, B50: a waiter's turn, dropped at any point, is settled by repeating it, or given
/// up.
pub(crate) async fn a_dropped_turn_is_found_again_or_given_up(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (holder, session) = (node.session("holder").await?, node.session("waiter").await?);
    let key = LockKey::new("nightly")?;
    for polls in POLLS {
        let mut done = false;
        for found in [true, false] {
            let holding = holder.acquire(&key).await?;
            let waiter = session.enqueue(&key).await?;
            assert!(holding.release().await?);
            done = scene.drop_after(polls, waiter.try_again()).await;
            if found {
                let next = waiter.take().await?;
                assert!(next.token() > holding.token());
                assert!(next.release().await?);
            }
            gives_up(&scene, &session, 2).await?;
            assert_eq!(waiter.try_again().await?, InsertOutcome::Ended);
        }
        if done {
            return Ok(());
        }
    }
    panic!("a turn is never done");
}

/// ALL-1, EXTEND-1, KEEP-2, B172: renewals, dropped at any point, lose nothing.
pub(crate) async fn a_dropped_renewal_loses_nothing(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    for polls in POLLS {
        let extended = scene.drop_after(polls, holding.extend()).await;
        let renewal = session.renew(&[&holding]);
        let renewed = scene.drop_after(polls, renewal).await;
        holding.stands().await?;
        if extended && renewed {
            assert!(holding.release().await?);
            return gives_up(&scene, &session, 1).await;
        }
    }
    panic!("a renewal is never done");
}

/// ALL-1, DELETE-1, B172: a release that was begun ends the grant, whoever waits for the answer.
pub(crate) async fn a_dropped_release_frees_the_key(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (session, other) = (node.session("holder").await?, node.session("other").await?);
    for polls in POLLS {
        let key = LockKey::new(format!("after {polls}"))?;
        let holding = session.acquire(&key).await?;
        let done = scene.drop_after(polls, holding.release()).await;
        scene.settle().await;
        if polls == 0 {
            holding.stands().await?;
            assert!(holding.release().await?);
        }
        let next = other.acquire(&key).await?;
        assert!(!holding.release().await?);
        assert!(next.release().await?);
        if done {
            return scene.nothing_is_left_but(2).await;
        }
    }
    panic!("a release is never done");
}

/// ALL-1, ABANDON-1, B172: an abandon that was begun ends the attempt.
pub(crate) async fn a_dropped_abandon_ends_the_attempt(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (holder, session) = (node.session("holder").await?, node.session("waiter").await?);
    let holding = holder.acquire(&LockKey::new("nightly")?).await?;
    for polls in POLLS {
        let waiter = session.enqueue(holding.key()).await?;
        let done = scene.drop_after(polls, waiter.abandon()).await;
        scene.settle().await;
        if polls == 0 {
            waiter.still_waits().await?;
            waiter.abandon().await?;
        }
        scene.nothing_is_left_but(3).await?;
        assert_eq!(waiter.try_again().await?, InsertOutcome::Ended);
        if done {
            return holding.stands().await;
        }
    }
    panic!("an abandon is never done");
}

/// ALL-1, REVOKE-2, RECORDS-1, B172: a revoke that was begun happens, once; repeating it tells what
/// it did.
pub(crate) async fn a_dropped_revoke_happens_once(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    for polls in POLLS {
        let key = LockKey::new(format!("after {polls}"))?;
        let holding = session.acquire(&key).await?;
        let target = RevokeTarget::Grant(holding.token());
        let request = node.revoke_request(&key, target)?;
        let revoke = node.store.revoke(request.clone());
        let done = scene.drop_after(polls, revoke).await;
        scene.settle().await;
        match polls {
            0 => holding.stands().await?,
            _ => assert_eq!(holding.extend().await?, None),
        }
        let outcome = node.store.revoke(request).await?;
        assert!(outcome.revoked);
        assert_eq!(outcome.previous_token, Some(holding.token()));
        let records = node.store.revocations(&key, PageRequest::default()).await?;
        assert_eq!(records.entries.len(), 1);
        if done {
            return Ok(());
        }
    }
    panic!("a revoke is never done");
}

/// ALL-1, CLOSE-1, OPEN-1, B172: an opening dropped at any point is opened by repeating it, and
/// closed by closing it; a close that was begun happens.
pub(crate) async fn a_dropped_opening_or_close_is_settled_by_a_close(scene: Scene) -> Verdict {
    let node = scene.node().await;
    for polls in POLLS {
        let request = node.open_request("fickle", Ttl::DEFAULT)?;
        let open = node.store.open_session(request.clone());
        let opened = scene.drop_after(polls, open).await;
        let again = node.store.open_session(request.clone()).await?;
        let session = Session::new(node.clone(), request.owner, again);
        let holding = session.acquire(&LockKey::new("nightly")?).await?;
        let closed = scene.drop_after(polls, session.close()).await;
        scene.settle().await;
        if polls == 0 {
            holding.stands().await?;
            session.close().await?;
        }
        scene.nothing_is_left_but(0).await?;

        let request = node.open_request("forgetful", Ttl::DEFAULT)?;
        let open = node.store.open_session(request.clone());
        scene.drop_after(polls, open).await;
        scene.settle().await;
        node.store.close_session(request.session).await?;
        scene.nothing_is_left_but(0).await?;
        if opened && closed {
            return Ok(());
        }
    }
    panic!("an opening is never done");
}

/// WAIT-2, READ-1, ALL-1: what only looks can be dropped at any point without a trace.
pub(crate) async fn dropped_looks_leave_no_trace(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let waiter = node.session("waiter").await?.enqueue(&key).await?;
    let before = scene.operator().residue().await;
    for polls in 0..8 {
        let everything = lock_spi::KeyPrefix::default();
        let page = PageRequest::default();
        scene.drop_after(polls, node.store.read(&key)).await;
        let listing = node.store.list(&everything, page.clone());
        scene.drop_after(polls, listing).await;
        let records = node.store.revocations(&key, page);
        scene.drop_after(polls, records).await;
        scene
            .runtime()
            .timeout(
                std::time::Duration::from_millis(30),
                scene.drop_after(polls, waiter.wait()),
            )
            .await
            .ok();
    }
    scene.settle().await;
    assert_eq!(scene.operator().residue().await, before);
    waiter.still_waits().await?;
    holding.stands().await
}
