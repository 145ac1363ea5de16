//! What holds for a few holds for many.

use std::collections::BTreeSet;

use lock_spi::{InsertOutcome, LockKey, Queue};

use crate::scenario::Verdict;
use crate::scene::Scene;
use crate::session::Holding;

/// More than a store is likely to handle in one of its own requests.
const MANY: usize = 150;

/// KEEP-2, KEEP-3, CLOSE-1: a session with many grants is kept in one call that names exactly those
/// that are gone, and closed in one.
pub(crate) async fn a_session_with_many_grants_is_kept_and_closed(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let mut holdings = Vec::new();
    for at in 0..MANY {
        holdings.push(
            session
                .acquire(&LockKey::new(format!("lock {at}"))?)
                .await?,
        );
    }
    let lost: Vec<_> = holdings.iter().step_by(11).cloned().collect();
    for holding in &lost {
        scene.operator().delete_lock(holding.key()).await;
    }
    let all: Vec<&Holding> = holdings.iter().collect();
    let kept = session.renew(&all).await?;
    let Some(kept) = kept else {
        panic!("the session stands");
    };
    let gone: BTreeSet<_> = kept.gone.iter().map(|gone| gone.token).collect();
    let expected: BTreeSet<_> = lost.iter().map(Holding::token).collect();
    assert_eq!(gone, expected);
    let standing: Vec<_> = holdings
        .iter()
        .filter(|holding| !gone.contains(&holding.token()))
        .collect();
    let half: Vec<_> = standing.iter().copied().step_by(2).collect();
    let kept = session.renew(&half).await?;
    assert!(kept.is_some_and(|kept| kept.gone.is_empty()));
    scene.nothing_is_left_but(1 + half.len()).await?;
    for holding in half {
        holding.stands().await?;
    }
    session.close().await?;
    scene.nothing_is_left_but(0).await
}

/// INSERT-7, ABANDON-1, B98: a long queue keeps its order, also where every third gives up in the
/// midst of it.
pub(crate) async fn a_long_queue_keeps_its_order(scene: Scene) -> Verdict {
    let nodes = [scene.node().await, scene.node().await];
    let key = LockKey::new("nightly")?;
    let mut holding = nodes[0].session("holder").await?.acquire(&key).await?;
    let mut line = Vec::new();
    for node in nodes.iter().cycle().take(MANY / 2) {
        line.push(node.session("waiter").await?.enqueue(&key).await?);
    }
    for waiter in line.iter().skip(1).step_by(3) {
        waiter.abandon().await?;
    }
    let mut staying: Vec<_> = (0..).zip(line).filter(|(at, _)| at % 3 != 1).collect();
    staying.reverse();
    let mut rounds = 0;
    while let Some((_, next)) = staying.pop() {
        assert!(holding.release().await?);
        if let Some((_, last)) = staying.first() {
            last.still_waits().await?;
        }
        holding = next.take().await?;
        rounds += 1;
        if rounds % 10 == 0 {
            let barging = nodes[1].session("barging").await?;
            let refusal = barging
                .insert(&key, barging.attempt(), Queue::Never)
                .await?;
            assert!(matches!(refusal, InsertOutcome::Held(_)), "{refusal:?}");
            barging.close().await?;
        }
    }
    holding.stands().await
}
