//! No grant is handed out at or below a key's floor.

use lock_spi::{ErrorKind, FencingToken, LockKey, Queue};

use crate::scenario::Verdict;
use crate::scene::Scene;
use crate::session::granted;

/// How far above the newest token a floor is raised by hand.
const AHEAD: u64 = 40;

/// INSERT-2, ALL-3: below a floor that was raised by hand a store mints above it, or answers
/// `FloorViolated` with both numbers and holds nothing; once its counter has passed the floor, it
/// grants again.
pub(crate) async fn a_floor_raised_by_hand_is_never_undercut(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let (key, other) = (LockKey::new("nightly")?, LockKey::new("hourly")?);
    let before = session.acquire(&key).await?;
    assert!(before.release().await?);
    let floor = FencingToken::new(before.token().as_u64() + AHEAD)?;
    scene.operator().raise_floor(&key, floor).await;
    let mut refusals = 0;
    let grant = loop {
        match session.insert(&key, session.attempt(), Queue::Never).await {
            Ok(outcome) => break granted(outcome),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::FloorViolated, "{error}");
                assert!(!error.is_retryable());
                let Some(violation) = error.floor_violation() else {
                    panic!("without its numbers: {error}");
                };
                assert!(violation.token <= violation.floor);
                assert_eq!(violation.floor, floor);
            }
        }
        scene.nothing_is_left_but(1).await?;
        refusals += 1;
        assert!(refusals <= AHEAD, "the counter passes the floor");
        // Every store's counter moves with grants.
        let elsewhere = session.acquire(&other).await?;
        assert!(elsewhere.release().await?);
    };
    assert!(grant.token > floor);
    Ok(())
}

/// INSERT-2: a floor binds its own key only.
pub(crate) async fn a_floor_binds_one_key(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let other = session.acquire(&LockKey::new("hourly")?).await?;
    assert!(other.release().await?);
    let floor = FencingToken::new(other.token().as_u64() + 1_000_000)?;
    let key = LockKey::new("nightly")?;
    scene.operator().raise_floor(&key, floor).await;
    let anew = session.acquire(&LockKey::new("hourly")?).await?;
    assert!(anew.token() > other.token());
    anew.stands().await
}

/// INSERT-2, READ-1: a reader is told the floor.
pub(crate) async fn a_reader_is_told_the_floor(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    assert_eq!(node.store.read(&key).await?.floor, None);
    let outcome = node.revoke(&key).await?;
    assert!(outcome.new_token_floor.is_some());
    scene
        .eventually("the floor shows", crate::scene::PATIENCE, async || {
            Ok(node.store.read(&key).await?.floor == outcome.new_token_floor)
        })
        .await
}

/// REVOKE-5, INSERT-2: a revoke never lowers a floor.
pub(crate) async fn a_revoke_never_lowers_a_floor(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let high = FencingToken::new(holding.token().as_u64() + 1_000_000)?;
    scene.operator().raise_floor(&key, high).await;
    let outcome = node.revoke(&key).await?;
    assert_eq!(outcome.previous_token, Some(holding.token()));
    assert!(outcome.new_token_floor >= Some(high));
    Ok(())
}
