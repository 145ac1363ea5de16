//! Tokens name grants for all time, and rise.

use lock_spi::{LockKey, Queue};

use crate::scenario::Verdict;
use crate::scene::Scene;
use crate::session::granted;

/// INSERT-2, B146: over hundreds of grants to several sessions and processes, ended in every way
/// there is, the tokens of a key strictly rise.
pub(crate) async fn tokens_rise_over_hundreds_of_grants(scene: Scene) -> Verdict {
    const ROUNDS: u32 = 320;
    let key = LockKey::new("nightly")?;
    let nodes = [scene.node().await, scene.node().await];
    let mut lasting = Vec::new();
    for node in nodes.iter().cycle().take(4) {
        lasting.push(node.session("worker").await?);
    }
    let mut last = None;
    for (round, session) in (0..ROUNDS).zip(lasting.iter().cycle()) {
        let node = session.node();
        let holding = match round % 40 {
            // One whose session is closed, and one whose session expires.
            10 => node.session("closing").await?.acquire(&key).await?,
            20 => node.brief_session("expiring").await?.acquire(&key).await?,
            _ => session.acquire(&key).await?,
        };
        assert!(Some(holding.token()) > last, "{round}: {last:?}");
        last = Some(holding.token());
        match round % 40 {
            10 => holding.session.close().await?,
            20 => scene.until_expired(node, &holding.session, &key).await?,
            30 => {
                let outcome = node.revoke(&key).await?;
                assert!(outcome.revoked);
                last = outcome.new_token_floor;
            }
            35 => scene.operator().delete_lock(&key).await,
            _ => assert!(holding.release().await?),
        }
    }
    Ok(())
}

/// INSERT-2, EXTEND-2, B07: released and taken again without time moving, a key has another token,
/// and the first one is dead.
pub(crate) async fn a_grant_anew_in_the_same_instant_has_another_token(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let key = LockKey::new("nightly")?;
    let first = session.acquire(&key).await?;
    assert!(first.release().await?);
    let second = session.acquire(&key).await?;
    assert!(second.token() > first.token());
    first.is_gone().await?;
    second.stands().await
}

/// INSERT-2, B116: a holder that comes back after another one gets a third token, and its first one
/// stays dead.
pub(crate) async fn who_comes_back_gets_a_higher_token(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let paused = node.session("paused").await?;
    let first = paused.acquire(&key).await?;
    scene.operator().delete_lock(&key).await;
    let second = node.session("other").await?.acquire(&key).await?;
    first.is_gone().await?;
    assert!(second.release().await?);
    let third = paused.acquire(&key).await?;
    assert!(first.token() < second.token() && second.token() < third.token());
    first.is_gone().await?;
    third.stands().await
}

/// INSERT-2, INSERT-3: grants in a row of one queue have rising tokens, and a repeated turn has the
/// same one.
pub(crate) async fn tokens_rise_along_a_queue(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let mut holding = node.session("first").await?.acquire(&key).await?;
    let mut waiting = Vec::new();
    for _ in 0..6 {
        waiting.push(node.session("waiter").await?.enqueue(&key).await?);
    }
    for waiter in waiting {
        assert!(holding.release().await?);
        let next = waiter.take().await?;
        assert!(next.token() > holding.token());
        let again = granted(
            waiter
                .session
                .insert(&key, waiter.attempt, Queue::Join)
                .await?,
        );
        assert_eq!(again.token, next.token());
        holding = next;
    }
    Ok(())
}
