//! What is not renewed ends by itself.

use std::time::Duration;

use lock_spi::{ErrorKind, Expiry, InsertOutcome, LockKey, Queue, Ttl};

use crate::scenario::Verdict;
use crate::scene::Scene;
use crate::session::{granted, held_by, refused};

/// DELETE-1, DELETE-2, ALL-4, B175: a holder that stalled past its expiry cannot end the grant of
/// whoever came next: its release is `false`, and the key stands with its token.
pub(crate) async fn a_stale_holder_cannot_release_its_successor(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let stalled = here.brief_session("stalled").await?;
    let stale = stalled.acquire(&key).await?;
    scene.until_expired(&there, &stalled, &key).await?;
    let successor = there.session("successor").await?.acquire(&key).await?;
    assert!(successor.token() > stale.token());
    assert!(!stale.release().await?);
    successor.stands().await?;
    held_by(
        &there.session("third").await?.try_acquire(&key).await?,
        &successor,
    );
    assert!(successor.release().await?);
    assert!(!stale.release().await?, "also when the key is free");
    Ok(())
}

/// EXTEND-2, ALL-5, B02, B04, B08: an expired grant cannot be extended, neither while the key is
/// free, nor while another holds it, nor after that one has gone.
pub(crate) async fn an_expired_grant_is_never_extended(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let session = here.brief_session("holder").await?;
    let expired = session.acquire(&key).await?;
    scene.until_expired(&there, &session, &key).await?;
    assert_eq!(expired.extend().await?, None, "free, but not its own");
    let next = there.session("next").await?.acquire(&key).await?;
    assert_eq!(expired.extend().await?, None, "another's");
    next.stands().await?;
    assert!(next.release().await?);
    assert_eq!(expired.extend().await?, None, "free again");
    let anew = here.session("holder").await?.acquire(&key).await?;
    assert!(anew.token() > next.token());
    assert_eq!(
        expired.extend().await?,
        None,
        "its owner's, by another grant"
    );
    anew.stands().await
}

/// KEEP-4, INSERT-8, ALL-5: a session that expired is gone for good: it is not kept, and holds
/// nothing.
pub(crate) async fn an_expired_session_is_not_revived(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let session = here.brief_session("holder").await?;
    let holding = session.acquire(&key).await?;
    scene.until_expired(&there, &session, &key).await?;
    for _ in 0..2 {
        let kept = session.renew(&[&holding]).await?;
        assert_eq!(kept, None);
    }
    refused(
        session.insert(&key, session.attempt(), Queue::Never).await,
        ErrorKind::SessionGone,
    );
    holding.is_gone().await?;
    scene.nothing_is_left_but(0).await
}

/// INSERT-1, B155, B160: the lock of a holder that died is free after its ttl, without anybody
/// clearing up; until then readers see who had it.
pub(crate) async fn the_lock_of_a_dead_holder_frees_itself(scene: Scene) -> Verdict {
    let (dying, living) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let session = dying.brief_session("dying").await?;
    let holding = session.acquire(&key).await?;
    drop(dying);
    let seen = living.holder(&key).await?.map(|holder| holder.owner);
    assert_eq!(seen.as_ref(), Some(session.owner()));
    let waiting = living.session("waiting").await?;
    let attempt = waiting.attempt();
    let limit = session.ttl().as_duration() + living.hand_over_bound();
    let mut grant = None;
    scene
        .eventually("the key is handed over", limit, async || {
            let outcome = waiting.insert(&key, attempt, Queue::Join).await?;
            if matches!(outcome, InsertOutcome::Granted(_)) {
                grant = Some(granted(outcome));
            }
            Ok(grant.is_some())
        })
        .await?;
    assert!(grant.is_some_and(|grant| grant.token > holding.token()));
    Ok(())
}

/// KEEP-1, EXTEND-1: what is renewed lives on far beyond its ttl, by `keep_alive` as by `extend`.
pub(crate) async fn what_is_renewed_outlives_its_ttl(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let other = there.session("other").await?;
    let kept = here.brief_session("kept").await?;
    let extended = here.brief_session("extended").await?;
    let by_session = kept.acquire(&LockKey::new("nightly")?).await?;
    let by_grant = extended.acquire(&LockKey::new("hourly")?).await?;
    for _ in 0..9 {
        scene.sleep(kept.ttl().as_duration() / 3).await;
        let answer = kept.renew(&[&by_session]).await?;
        assert!(answer.is_some_and(|answer| answer.gone.is_empty()));
        by_grant.stands().await?;
    }
    held_by(&other.try_acquire(by_session.key()).await?, &by_session);
    held_by(&other.try_acquire(by_grant.key()).await?, &by_grant);
    by_session.stands().await
}

/// KEEP-1, INSERT-3, B122: what a store says is left is really left, also where its answers were
/// slow: nobody else is granted within it.
pub(crate) async fn what_is_said_to_be_left_is_left(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let other = scene.node().await.session("other").await?;
    for moment in [0, 5, 15, 25, 35, 45, 60].map(Duration::from_millis) {
        let key = LockKey::new(format!("after {moment:?}"))?;
        let session = node.brief_session("holder").await?;
        let holding = session.acquire(&key).await?;
        let asked = scene.runtime().now();
        let renewal = scene.runtime().run_to_end(session.renew(&[&holding]));
        scene.sleep(moment).await;
        faults.hold_requests();
        scene.sleep(session.ttl().as_duration() / 5).await;
        faults.release_requests();
        let mut told = Vec::new();
        if let Ok(Ok(Some(kept))) = renewal.await {
            told.push(asked + kept.remaining);
        }
        let asked = scene.runtime().now();
        if let InsertOutcome::Granted(grant) = holding.repeat().await? {
            told.extend(grant.remaining.map(|left| asked + left));
        }
        let limit = session.ttl().as_duration() + node.hand_over_bound();
        scene
            .eventually("the key is handed over", limit, async || {
                let outcome = other.try_acquire(&key).await?;
                Ok(matches!(outcome, InsertOutcome::Granted(_)))
            })
            .await?;
        let handed_over = scene.runtime().now();
        assert!(
            told.iter().all(|deadline| *deadline <= handed_over),
            "{moment:?}"
        );
    }
    Ok(())
}

/// REAP-1: clearing up touches nothing that lives and disturbs no tokens; a store that expires by
/// itself clears nothing.
pub(crate) async fn clearing_up_touches_nothing_that_lives(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (key, dead_key) = (LockKey::new("nightly")?, LockKey::new("hourly")?);
    let holding = node.session("holder").await?.acquire(&key).await?;
    let waiter = node.session("waiter").await?.enqueue(&key).await?;
    let dying = node.brief_session("dying").await?;
    let dead = dying.acquire(&dead_key).await?;
    scene.until_expired(&node, &dying, &dead_key).await?;
    let cleared = node.store.reap_expired(100).await?;
    match node.store.descriptor().capabilities.expiry {
        Expiry::ByItself => assert_eq!(cleared, 0),
        _ => assert!(cleared > 0, "the dead session is cleared"),
    }
    assert_eq!(node.store.reap_expired(100).await?, 0);
    holding.stands().await?;
    waiter.still_waits().await?;
    let next = node.session("next").await?.acquire(&dead_key).await?;
    assert!(next.token() > dead.token());
    Ok(())
}

/// OPEN-2: a session that nobody renews lives for the whole ttl that it was told, and its grants
/// with it.
pub(crate) async fn a_session_lives_as_long_as_it_was_told(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let other = node.session("other").await?;
    let least = node.store.descriptor().capabilities.min_ttl.as_duration();
    let asked = scene.runtime().now();
    let session = node.session_of("holder", Ttl::new(least * 3)?).await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let nearly_over = asked + session.ttl().as_duration() * 3 / 4;
    scene.runtime().sleep_until(nearly_over).await;
    held_by(&other.try_acquire(holding.key()).await?, &holding);
    holding.stands().await?;
    scene.until_expired(&node, &session, holding.key()).await
}

/// KEEP-1: a grant is said to have no more left than its session, which it joined late.
pub(crate) async fn a_grant_has_no_more_left_than_its_session(scene: Scene) -> Verdict {
    let session = scene.node().await.brief_session("holder").await?;
    let latest = scene.runtime().now() + session.ttl().as_duration();
    scene.sleep(session.ttl().as_duration() / 2).await;
    let asked = scene.runtime().now();
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    if let Some(remaining) = holding.grant.remaining {
        assert!(asked + remaining <= latest, "it outlives its session");
    }
    Ok(())
}
