//! A holder gives its grant back.

use lock_spi::{ErrorKind, InsertOutcome, LockKey, Queue};

use crate::scenario::Verdict;
use crate::scene::{Scene, joined};
use crate::session::held_by;

/// DELETE-1, B167: a release is `true` once, and `false` ever after.
pub(crate) async fn a_grant_is_released_once(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    assert!(holding.release().await?);
    assert!(!holding.release().await?);
    scene.nothing_is_left_but(1).await?;
    holding.is_gone().await
}

/// DELETE-2, ALL-4: another's grant, released with one's own stale token, stands.
pub(crate) async fn a_wrong_token_releases_nothing(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let old = here.session("first").await?.acquire(&key).await?;
    assert!(old.release().await?);
    let present = there.session("second").await?.acquire(&key).await?;
    assert!(!old.release().await?);
    assert!(!there.store.delete_if_owner(&key, old.token()).await?);
    let read = there.holder(&key).await?.map(|holder| holder.token);
    assert_eq!(read, Some(present.token()));
    present.stands().await
}

/// DELETE-1: the token names the grant; any process may release by it.
pub(crate) async fn any_process_can_release_by_the_token(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let holding = here.session("holder").await?.acquire(&key).await?;
    assert!(there.store.delete_if_owner(&key, holding.token()).await?);
    holding.is_gone().await?;
    let next = there.session("next").await?.acquire(&key).await?;
    next.stands().await
}

/// DELETE-1: of releases side by side one is `true`.
pub(crate) async fn of_releases_side_by_side_one_ends_the_grant(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let releases: Vec<_> = (0..6)
        .map(|_| {
            let holding = holding.clone();
            scene
                .runtime()
                .run_to_end(async move { holding.release().await })
        })
        .collect();
    let mut ended = 0;
    for release in releases {
        ended += u32::from(joined(release).await?);
    }
    assert_eq!(ended, 1);
    scene.nothing_is_left_but(1).await
}

/// DELETE-1, KEEP-3: a renewal leaves a grant to the release that is under way, as long as its
/// attempt is accounted for.
pub(crate) async fn a_release_beside_a_renewal_is_told_that_it_ended_the_grant(
    scene: Scene,
) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    for round in 0..8 {
        let key = LockKey::new(format!("round {round}"))?;
        let holding = session.acquire(&key).await?;
        let releasing = holding.clone();
        let release = scene
            .runtime()
            .run_to_end(async move { releasing.release().await });
        let renewal = scene
            .runtime()
            .run_to_end(session.keep_alive(&[], &[holding.attempt]));
        assert!(joined(release).await?);
        joined(renewal).await?;
        holding.is_gone().await?;
    }
    scene.nothing_is_left_but(1).await
}

/// INSERT-5, ALL-5: the attempt of a grant that was released, revoked, or deleted by hand is over.
pub(crate) async fn the_attempt_of_an_ended_grant_is_over(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let session = here.session("holder").await?;
    let released = session.acquire(&LockKey::new("released")?).await?;
    assert!(released.release().await?);
    let revoked = session.acquire(&LockKey::new("revoked")?).await?;
    assert!(there.revoke(revoked.key()).await?.revoked);
    let deleted = session.acquire(&LockKey::new("deleted")?).await?;
    scene.operator().delete_lock(deleted.key()).await;
    for over in [&released, &revoked, &deleted] {
        for queue in [Queue::Never, Queue::Join] {
            let again = session.insert(over.key(), over.attempt, queue).await?;
            assert_eq!(again, InsertOutcome::Ended, "{:?}", over.key());
        }
        session.acquire(over.key()).await?.stands().await?;
    }
    Ok(())
}

/// INSERT-3, DELETE-1: repeating what was granted is no second grant: one release frees the key.
pub(crate) async fn a_repeated_grant_is_released_once(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    for _ in 0..3 {
        assert!(matches!(holding.repeat().await?, InsertOutcome::Granted(_)));
        holding.stands().await?;
    }
    assert!(holding.release().await?);
    let next = node.session("next").await?.acquire(holding.key()).await?;
    held_by(&session.try_acquire(holding.key()).await?, &next);
    Ok(())
}

/// DELETE-1, EXTEND-2, B61: a release and an extend side by side end with the key free, and neither
/// is an error.
pub(crate) async fn a_release_beside_an_extend_frees_the_key(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    for round in 0..8 {
        let key = LockKey::new(format!("round {round}"))?;
        let holding = session.acquire(&key).await?;
        let (extending, releasing) = (holding.clone(), holding.clone());
        let extend = scene
            .runtime()
            .run_to_end(async move { extending.extend().await });
        let release = scene
            .runtime()
            .run_to_end(async move { releasing.release().await });
        if let Some(grant) = joined(extend).await? {
            assert_eq!(grant.token, holding.token());
        }
        assert!(joined(release).await?);
        holding.is_gone().await?;
    }
    scene.nothing_is_left_but(1).await
}

/// DELETE-1, B175: a release after the session was ended is `false`, whether the key is free or
/// taken, and no error.
pub(crate) async fn releasing_what_expired_is_false(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let session = node.session("holder").await?;
    let expired = session.acquire(&key).await?;
    scene.operator().end_session(session.id()).await;
    assert!(!expired.release().await?, "free");
    let next = node.session("next").await?.acquire(&key).await?;
    assert!(!expired.release().await?, "taken");
    next.stands().await?;
    let insert = session.insert(&key, session.attempt(), Queue::Never).await;
    crate::session::refused(insert, ErrorKind::SessionGone);
    Ok(())
}
