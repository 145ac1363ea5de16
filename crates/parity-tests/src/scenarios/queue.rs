//! Places are served in the order in which they were taken.

use lock_spi::{ErrorKind, InsertOutcome, LockKey, Queue};

use crate::scenario::Verdict;
use crate::scene::{PATIENCE, Scene, joined};
use crate::session::{Waiting, queued, refused};

/// INSERT-7: five waiters, in processes of their own, are granted in the order in which they came.
pub(crate) async fn waiters_are_served_in_order(scene: Scene) -> Verdict {
    let key = LockKey::new("nightly")?;
    let mut holding = scene
        .node()
        .await
        .session("holder")
        .await?
        .acquire(&key)
        .await?;
    let mut line: Vec<Waiting> = Vec::new();
    for _ in 0..5 {
        let waiter = scene
            .node()
            .await
            .session("waiter")
            .await?
            .enqueue(&key)
            .await?;
        if let Some(before) = line.last() {
            assert!(waiter.place.position > before.place.position);
        }
        if let Some(ahead) = waiter.place.ahead {
            assert_eq!(usize::try_from(ahead).ok(), Some(line.len()));
        }
        line.push(waiter);
    }
    for at in 0..line.len() {
        assert!(holding.release().await?);
        // The last come ask first, and again; it does not help them.
        for waiter in line[at + 1..].iter().rev() {
            waiter.still_waits().await?;
            waiter.still_waits().await?;
        }
        let next = line[at].take().await?;
        assert!(next.token() > holding.token());
        holding = next;
    }
    assert!(holding.release().await?);
    scene.nothing_is_left_but(6).await
}

/// INSERT-4, B101: while a queue stands nobody barges past it: neither who takes no place, nor the
/// holder that just released, nor who comes last.
pub(crate) async fn nobody_barges_past_a_queue(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let greedy = node.session("greedy").await?;
    let holding = greedy.acquire(&key).await?;
    let waiter = node.session("waiter").await?.enqueue(&key).await?;
    assert!(holding.release().await?);
    let barging = scene.node().await.session("barging").await?;
    let mut last = None;
    for session in [&greedy, &barging] {
        let refusal = session.try_acquire(&key).await?;
        assert!(matches!(refusal, InsertOutcome::Held(_)), "{refusal:?}");
        last = Some(session.enqueue(&key).await?);
    }
    let next = waiter.take().await?;
    if let Some(last) = last {
        last.still_waits().await?;
    }
    next.stands().await
}

/// INSERT-3, INSERT-7: a waiter that asks again keeps its place, and takes no second one.
pub(crate) async fn a_place_is_kept_and_taken_once(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let first = node.session("first").await?.enqueue(&key).await?;
    let second = node.session("second").await?.enqueue(&key).await?;
    for _ in 0..4 {
        first.still_waits().await?;
        second.still_waits().await?;
    }
    scene
        .eventually("two wait", PATIENCE, async || {
            Ok(node.store.read(&key).await?.waiter_count == Some(2))
        })
        .await?;
    assert!(holding.release().await?);
    let next = first.take().await?;
    second.still_waits().await?;
    assert!(next.release().await?);
    second.take().await?;
    Ok(())
}

/// INSERT-7: a free key without a queue is granted at once to who would queue.
pub(crate) async fn who_would_queue_for_a_free_key_is_granted(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let key = LockKey::new("nightly")?;
    let attempt = session.attempt();
    let grant = crate::session::granted(session.insert(&key, attempt, Queue::Join).await?);
    session.holding(attempt, grant).stands().await?;
    scene.nothing_is_left_but(2).await
}

/// ABANDON-1, INSERT-7, B47: a waiter that gives up lets the next through, and leaves nothing.
pub(crate) async fn a_waiter_that_gives_up_lets_the_next_through(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let first = node.session("first").await?.enqueue(&key).await?;
    let second = node.session("second").await?.enqueue(&key).await?;
    first.abandon().await?;
    assert_eq!(first.try_again().await?, InsertOutcome::Ended);
    assert!(holding.release().await?);
    let next = second.take().await?;
    assert!(next.release().await?);
    let third = node.session("third").await?.acquire(&key).await?;
    assert!(third.release().await?);
    scene.nothing_is_left_but(4).await
}

/// INSERT-7, ABANDON-1: where all waiters give up, the key is free for anybody.
pub(crate) async fn a_queue_that_emptied_stands_in_nobodys_way(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let waiter = node.session("waiter").await?.enqueue(&key).await?;
    assert!(holding.release().await?);
    let other = node.session("other").await?;
    assert!(matches!(
        other.try_acquire(&key).await?,
        InsertOutcome::Held(_)
    ));
    waiter.abandon().await?;
    other.acquire(&key).await?.stands().await
}

/// INSERT-8, CLOSE-1, B52, B64, B65: a waiter whose session was ended is passed over, and is told
/// so when it asks.
pub(crate) async fn a_waiter_whose_session_ended_is_passed_over(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let dead = node.session("dead").await?;
    let place = dead.enqueue(&key).await?;
    let living = node.session("living").await?.enqueue(&key).await?;
    scene.operator().end_session(dead.id()).await;
    refused(place.try_again().await, ErrorKind::SessionGone);
    living.still_waits().await?;
    assert!(holding.release().await?);
    let next = living.take().await?;
    refused(place.try_again().await, ErrorKind::SessionGone);
    next.stands().await
}

/// INSERT-7, B52: a waiter that died in silence holds the others up no longer than its own ttl and
/// the store's bound.
pub(crate) async fn a_waiter_that_died_holds_nobody_up_for_long(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let dying = node.brief_session("dying").await?;
    dying.enqueue(&key).await?;
    let living = node.session("living").await?.enqueue(&key).await?;
    assert!(holding.release().await?);
    let limit = dying.ttl().as_duration() + node.hand_over_bound();
    scene
        .eventually("the next is granted", limit, async || {
            Ok(matches!(
                living.try_again().await?,
                InsertOutcome::Granted(_)
            ))
        })
        .await
}

/// INSERT-7, INSERT-5: a first in line that keeps its session but does not take its turn is passed
/// over within the store's bound.
pub(crate) async fn a_first_in_line_that_sleeps_is_passed_over(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let sleeping = node.session("sleeping").await?.enqueue(&key).await?;
    let ready = node.session("ready").await?.enqueue(&key).await?;
    assert!(holding.release().await?);
    let mut grant = None;
    scene
        .eventually(
            "the second is granted",
            node.hand_over_bound(),
            async || {
                if let InsertOutcome::Granted(granted) = ready.try_again().await? {
                    grant = Some(granted);
                }
                Ok(grant.is_some())
            },
        )
        .await?;
    let Some(grant) = grant else { return Ok(()) };
    let next = ready.session.holding(ready.attempt, grant);
    assert_eq!(sleeping.try_again().await?, InsertOutcome::Ended);
    next.stands().await
}

/// INSERT-1, INSERT-7, B179: of many waiters that all try at once after one release, one is
/// granted, the first; the others wait on.
pub(crate) async fn one_release_grants_one_waiter(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let mut line = Vec::new();
    for _ in 0..20 {
        line.push(node.session("waiter").await?.enqueue(&key).await?);
    }
    assert!(holding.release().await?);
    let tries: Vec<_> = line
        .iter()
        .map(|waiter| {
            let waiter = waiter.clone();
            scene
                .runtime()
                .run_to_end(async move { waiter.try_again().await })
        })
        .collect();
    for (at, outcome) in tries.into_iter().enumerate() {
        match joined(outcome).await? {
            InsertOutcome::Granted(_) => assert_eq!(at, 0, "out of turn"),
            other => {
                assert!(at > 0, "the first in line: {other:?}");
                let position = queued(other).position;
                assert_eq!(position, line[at].place.position);
            }
        }
    }
    Ok(())
}

/// INSERT-7: queues of different keys know nothing of each other, also where one session waits in
/// both.
pub(crate) async fn queues_of_different_keys_are_independent(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let holder = node.session("holder").await?;
    let (a, b) = (LockKey::new("a")?, LockKey::new("a/b")?);
    let (holds_a, holds_b) = (holder.acquire(&a).await?, holder.acquire(&b).await?);
    let waiter = node.session("waiter").await?;
    let (for_a, for_b) = (waiter.enqueue(&a).await?, waiter.enqueue(&b).await?);
    assert!(holds_b.release().await?);
    let got_b = for_b.take().await?;
    for_a.still_waits().await?;
    holds_a.stands().await?;
    assert!(holds_a.release().await?);
    for_a.take().await?.stands().await?;
    got_b.stands().await
}
