//! One grant is renewed.

use lock_spi::LockKey;

use crate::scenario::Verdict;
use crate::scene::{Scene, joined};
use crate::session::held_by;

/// EXTEND-1: three extends in a row give the grant's own token.
pub(crate) async fn extends_in_a_row_give_the_grants_own_token(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    for _ in 0..3 {
        holding.stands().await?;
    }
    let read = session.node().holder(holding.key()).await?;
    assert_eq!(read.map(|holder| holder.token), Some(holding.token()));
    assert!(holding.release().await?, "and the token still releases");
    scene.nothing_is_left_but(1).await
}

/// EXTEND-2: once the session was ended behind the holder, extending is `None`, not an error.
pub(crate) async fn extending_after_the_session_was_killed_is_none(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    scene.operator().end_session(session.id()).await;
    assert_eq!(holding.extend().await?, None);
    holding.is_gone().await
}

/// EXTEND-2, ALL-5, B02, B08: a grant whose entry an operator deleted is lost for good: nothing is
/// created, also when another was granted meanwhile.
pub(crate) async fn extending_after_the_entry_was_deleted_is_none(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let holding = here.session("holder").await?.acquire(&key).await?;
    scene.operator().delete_lock(&key).await;
    assert_eq!(holding.extend().await?, None);
    assert_eq!(here.holder(&key).await?, None, "nothing was created");
    let next = there.session("next").await?.acquire(&key).await?;
    assert_eq!(holding.extend().await?, None);
    next.stands().await?;
    assert!(next.release().await?);
    holding.is_gone().await
}

/// EXTEND-2, ALL-5: extending is `None` after a release, a revoke and a close, for good.
pub(crate) async fn extending_what_was_given_up_is_none(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let released = session.acquire(&LockKey::new("released")?).await?;
    assert!(released.release().await?);
    let revoked = session.acquire(&LockKey::new("revoked")?).await?;
    assert!(node.revoke(revoked.key()).await?.revoked);
    let closing = node.session("closing").await?;
    let closed = closing.acquire(&LockKey::new("closed")?).await?;
    closing.close().await?;
    for ended in [&released, &revoked, &closed] {
        ended.is_gone().await?;
        let anew = session.acquire(ended.key()).await?;
        assert!(anew.token() > ended.token());
        ended.is_gone().await?;
        anew.stands().await?;
    }
    Ok(())
}

/// EXTEND-3: extends side by side on one grant all succeed.
pub(crate) async fn extends_side_by_side_all_succeed(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let extends: Vec<_> = (0..8)
        .map(|_| {
            let holding = holding.clone();
            scene
                .runtime()
                .run_to_end(async move { holding.extend().await })
        })
        .collect();
    for extend in extends {
        let token = joined(extend).await?.map(|grant| grant.token);
        assert_eq!(token, Some(holding.token()));
    }
    holding.stands().await
}

/// EXTEND-1: an extend never shortens: what is left right after it is no less than before, and
/// never more than the ttl.
pub(crate) async fn an_extend_never_shortens(scene: Scene) -> Verdict {
    let session = scene.node().await.brief_session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let ttl = session.ttl().as_duration();
    let mut known = scene.runtime().now();
    for _ in 0..6 {
        scene.sleep(ttl / 5).await;
        let asked = scene.runtime().now();
        let Some(grant) = holding.extend().await? else {
            panic!("the grant stands");
        };
        if let Some(remaining) = grant.remaining {
            assert!(remaining <= ttl);
            assert!(asked + remaining >= known, "shorter than before");
            known = asked + remaining;
        }
    }
    Ok(())
}

/// EXTEND-2, INSERT-1: a token that was never granted extends nothing and ends nothing.
pub(crate) async fn a_made_up_token_extends_nothing(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let number = holding.token().as_u64();
    let free = LockKey::new("free")?;
    for made_up in [1, number - 1, number + 1, number + 1_000_000] {
        if [0, number].contains(&made_up) {
            continue;
        }
        let token = lock_spi::FencingToken::new(made_up)?;
        for key in [holding.key(), &free] {
            match node.store.extend(key, token).await {
                Ok(extended) => assert_eq!(extended, None),
                // A token of the future may mean that the store has gone back: it need not decide.
                Err(error) => assert!(made_up > number && error.is_retryable(), "{error}"),
            }
            assert!(!node.store.delete_if_owner(key, token).await?);
        }
    }
    let other = node.session("other").await?;
    held_by(&other.try_acquire(holding.key()).await?, &holding);
    holding.stands().await
}
