//! Waiters are told when they have reason to try again.

use std::time::Duration;

use lock_spi::{AttemptId, InsertOutcome, Joined, LockKey, Queue, Result, WaitRequest};

use crate::scenario::{Stop, Verdict};
use crate::scene::{PATIENCE, Scene, joined};
use crate::session::{Session, Waiting};

/// Long enough for a watch to stand.
const WATCH_STANDS: Duration = Duration::from_millis(500);

fn begin(scene: &Scene, waiter: &Waiting) -> Joined<Result<()>> {
    scene.runtime().run_to_end(waiter.wait())
}

async fn woken(scene: &Scene, wait: Joined<Result<()>>, limit: Duration) -> Result<(), Stop> {
    scene
        .within("the waiter is woken", limit, joined_answer(wait))
        .await?;
    Ok(())
}

async fn joined_answer(wait: Joined<Result<()>>) -> Result<()> {
    match wait.await {
        Ok(answer) => answer,
        Err(lost) => panic!("{lost}"),
    }
}

/// WAIT-1: a release wakes the first in line.
pub(crate) async fn a_release_wakes_the_first_in_line(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let holding = here.session("holder").await?.acquire(&key).await?;
    let waiter = there.session("waiter").await?.enqueue(&key).await?;
    let wait = begin(&scene, &waiter);
    scene.sleep(WATCH_STANDS).await;
    assert!(holding.release().await?);
    woken(&scene, wait, PATIENCE).await?;
    waiter.take().await?;
    Ok(())
}

/// WAIT-1: a release that came before the wait wakes it as well.
pub(crate) async fn a_release_before_the_wait_is_not_missed(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let waiter = node.session("waiter").await?.enqueue(&key).await?;
    assert!(holding.release().await?);
    woken(&scene, begin(&scene, &waiter), PATIENCE).await?;
    waiter.take().await?;
    Ok(())
}

/// WAIT-1: a release at the very moment at which the wait begins is not missed.
pub(crate) async fn a_release_beside_the_wait_is_not_missed(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (holder, waiting) = (node.session("holder").await?, node.session("waiter").await?);
    for round in 0..16 {
        let key = LockKey::new(format!("round {round}"))?;
        let holding = holder.acquire(&key).await?;
        let waiter = waiting.enqueue(&key).await?;
        let wait = begin(&scene, &waiter);
        let release = scene
            .runtime()
            .run_to_end(async move { holding.release().await });
        assert!(joined(release).await?);
        woken(&scene, wait, PATIENCE).await?;
        let next = waiter.take().await?;
        assert!(next.release().await?);
    }
    Ok(())
}

/// WAIT-1: the expiry of a holder that died wakes the first in line.
pub(crate) async fn an_expiry_wakes_the_first_in_line(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let dying = here.brief_session("dying").await?;
    dying.acquire(&key).await?;
    let waiter = there.session("waiter").await?.enqueue(&key).await?;
    let limit = dying.ttl().as_duration() + there.hand_over_bound();
    woken(&scene, begin(&scene, &waiter), limit).await?;
    scene
        .eventually("the waiter is granted", PATIENCE, async || {
            Ok(matches!(
                waiter.try_again().await?,
                InsertOutcome::Granted(_)
            ))
        })
        .await
}

/// WAIT-1: a revoke wakes the first in line, and so does the end of the place before its own.
pub(crate) async fn every_end_before_it_wakes_a_waiter(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    node.session("holder").await?.acquire(&key).await?;
    let first = node.session("first").await?.enqueue(&key).await?;
    let second = node.session("second").await?.enqueue(&key).await?;
    let wait = begin(&scene, &first);
    scene.sleep(WATCH_STANDS).await;
    assert!(node.revoke(&key).await?.revoked);
    woken(&scene, wait, PATIENCE).await?;
    let wait = begin(&scene, &second);
    scene.sleep(WATCH_STANDS).await;
    first.abandon().await?;
    woken(&scene, wait, PATIENCE).await?;
    second.take().await?;
    Ok(())
}

/// WAIT-1, INSERT-8, B55, B65: a waiter whose own session was ended is woken long before the holder
/// leaves.
pub(crate) async fn the_end_of_its_own_session_wakes_a_waiter(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let first = node.session("first").await?.enqueue(&key).await?;
    let second = node.session("second").await?.enqueue(&key).await?;
    for waiter in [second, first] {
        let wait = begin(&scene, &waiter);
        scene.sleep(WATCH_STANDS).await;
        scene.operator().end_session(waiter.session.id()).await;
        woken(&scene, wait, PATIENCE).await?;
        let again = waiter.try_again().await;
        crate::session::refused(again, lock_spi::ErrorKind::SessionGone);
    }
    holding.stands().await
}

/// WAIT-1, INSERT-8, B65: who begins to wait under a session that is gone is told at once.
pub(crate) async fn a_wait_under_a_session_that_is_gone_ends(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let killed = node.session("killed").await?.enqueue(&key).await?;
    let closed = node.session("closed").await?.enqueue(&key).await?;
    scene.operator().end_session(killed.session.id()).await;
    closed.session.close().await?;
    for waiter in [killed, closed] {
        let without = without_place(&waiter.session, &key, waiter.attempt);
        let without = scene.runtime().run_to_end(without);
        woken(&scene, begin(&scene, &waiter), PATIENCE).await?;
        woken(&scene, without, PATIENCE).await?;
    }
    holding.stands().await
}

/// WAIT-1: who has no place is woken by the end of the grant that refused it.
pub(crate) async fn who_has_no_place_is_woken_too(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let session = node.session("asking").await?;
    let attempt = session.attempt();
    let refusal = session.insert(&key, attempt, Queue::Never).await?;
    crate::session::held_by(&refusal, &holding);
    let wait = scene
        .runtime()
        .run_to_end(without_place(&session, &key, attempt));
    scene.sleep(WATCH_STANDS).await;
    assert!(holding.release().await?);
    woken(&scene, wait, PATIENCE).await?;
    crate::session::granted(session.insert(&key, attempt, Queue::Never).await?);
    Ok(())
}

fn without_place(
    session: &Session,
    key: &LockKey,
    attempt: AttemptId,
) -> impl Future<Output = Result<()>> + Send + 'static {
    let store = std::sync::Arc::clone(&session.node().store);
    let request = WaitRequest {
        key: key.clone(),
        session: session.id(),
        attempt,
        place: None,
    };
    async move { store.await_release(request).await }
}

/// WAIT-2: while nothing changes nobody is woken, and nothing is written; a wait that is dropped
/// leaves the place as it was.
pub(crate) async fn waiting_writes_nothing_and_keeps_the_place(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let waiter = node.session("waiter").await?.enqueue(&key).await?;
    let before = scene.operator().residue().await;
    for _ in 0..3 {
        let early = scene.runtime().timeout(WATCH_STANDS, waiter.wait()).await;
        assert!(early.is_err(), "woken by nothing: {early:?}");
        assert_eq!(scene.operator().residue().await, before);
        waiter.still_waits().await?;
    }
    assert!(holding.release().await?);
    waiter.take().await?;
    Ok(())
}

/// WAIT-1: all along a queue each waiter is woken when it is next.
pub(crate) async fn each_waiter_is_woken_in_turn(scene: Scene) -> Verdict {
    let key = LockKey::new("nightly")?;
    let node = scene.node().await;
    let mut holding = node.session("holder").await?.acquire(&key).await?;
    let mut line = Vec::new();
    for _ in 0..4 {
        let waiter = scene
            .node()
            .await
            .session("waiter")
            .await?
            .enqueue(&key)
            .await?;
        let wait = begin(&scene, &waiter);
        line.push((waiter, wait));
    }
    for (waiter, mut wait) in line {
        scene.sleep(WATCH_STANDS).await;
        assert!(holding.release().await?);
        // Woken perhaps early, for something else; then it looks and waits again.
        holding = loop {
            woken(&scene, wait, PATIENCE).await?;
            match waiter.try_again().await? {
                InsertOutcome::Granted(grant) => {
                    break waiter.session.holding(waiter.attempt, grant);
                }
                InsertOutcome::Queued(_) => wait = begin(&scene, &waiter),
                other => panic!("{other:?}"),
            }
        };
    }
    Ok(())
}
