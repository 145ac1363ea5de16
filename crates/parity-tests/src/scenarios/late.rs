//! What arrives late finds that the world went on, and leaves it alone.

use std::time::Duration;

use lock_spi::{InsertOutcome, LockKey, Queue, RevokeTarget};

use crate::scenario::Verdict;
use crate::scene::{ANSWER_LIMIT, Scene};
use crate::session::held_by;

/// EXTEND-2, KEEP-4, ALL-5, B02: renewals that arrive after the session was ended and the key was
/// granted to another revive nothing.
pub(crate) async fn renewals_that_arrive_late_revive_nothing(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let other = scene.node().await.session("other").await?;
    let session = node.session("slow").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    faults.hold_requests();
    let extending = holding.clone();
    let extend = scene
        .runtime()
        .run_to_end(async move { extending.extend().await });
    let renewal = scene.runtime().run_to_end(session.renew(&[&holding]));
    scene.settle().await;
    scene.operator().end_session(session.id()).await;
    let next = other.acquire(holding.key()).await?;
    faults.release_requests();
    if let Ok(Ok(extended)) = extend.await {
        assert_eq!(extended, None);
    }
    if let Ok(Ok(kept)) = renewal.await {
        assert_eq!(kept, None);
    }
    scene.settle().await;
    next.stands().await?;
    holding.is_gone().await?;
    assert_eq!(session.renew(&[&holding]).await?, None);
    scene.nothing_is_left_but(2).await
}

/// DELETE-2, ALL-4, ALL-5: a release that arrives after the key was granted to another ends
/// nothing.
pub(crate) async fn a_release_that_arrives_late_ends_nothing(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let other = scene.node().await.session("other").await?;
    let session = node.session("slow").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    faults.hold_requests();
    let release = scene.within("an answer", ANSWER_LIMIT, holding.release());
    assert!(release.await.is_err(), "nothing arrived");
    scene.operator().delete_lock(holding.key()).await;
    let next = other.acquire(holding.key()).await?;
    faults.release_requests();
    scene.settle().await;
    next.stands().await?;
    scene
        .insist(async || holding.release().await)
        .await
        .map(|ended| assert!(!ended))?;
    next.stands().await
}

/// REVOKE-3, ALL-4, ALL-5: a revoke of a grant that arrives after that grant has ended spares the
/// next one.
pub(crate) async fn a_revoke_that_arrives_late_spares_the_next_grant(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = scene.node().await.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let target = RevokeTarget::Grant(holding.token());
    let request = node.revoke_request(holding.key(), target)?;
    faults.hold_requests();
    let revoke = node.store.revoke(request.clone());
    let answer = scene.within("an answer", ANSWER_LIMIT, revoke).await;
    assert!(answer.is_err(), "nothing arrived: {answer:?}");
    assert!(holding.release().await?);
    let next = session.acquire(holding.key()).await?;
    faults.release_requests();
    scene.settle().await;
    let outcome = scene
        .insist(async || node.store.revoke(request.clone()).await)
        .await?;
    assert!(!outcome.revoked);
    next.stands().await
}

/// ALL-2, KEEP-4, EXTEND-2, B08: cut off for longer than its ttl, a holder is told nothing until it
/// is reached again, and then that all is gone; meanwhile another is granted, and stays.
pub(crate) async fn cut_off_for_longer_than_its_ttl_a_session_is_gone(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let observer = scene.node().await;
    let other = observer.session("other").await?;
    let session = node.brief_session("cut off").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    held_by(&other.try_acquire(holding.key()).await?, &holding);
    faults.partition();
    scene
        .until_expired(&observer, &session, holding.key())
        .await?;
    let next = other.acquire(holding.key()).await?;
    assert!(next.token() > holding.token());
    let renewal = scene.within("an answer", ANSWER_LIMIT, session.renew(&[&holding]));
    assert!(
        !matches!(renewal.await, Ok(Some(_))),
        "nothing is confirmed"
    );
    let extend = scene.within("an answer", ANSWER_LIMIT, holding.extend());
    assert!(!matches!(extend.await, Ok(Some(_))), "nothing is confirmed");
    faults.heal();
    let kept = scene
        .insist(async || session.renew(&[&holding]).await)
        .await?;
    assert_eq!(kept, None);
    holding.is_gone().await?;
    next.stands().await?;
    scene.nothing_is_left_but(2).await
}

/// INSERT-8, ALL-5, B67: a session cut off while it waits is passed over when it has expired, and
/// does not come back to life.
pub(crate) async fn cut_off_for_longer_than_its_ttl_a_waiter_is_gone(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let observer = scene.node().await;
    let holding = observer
        .session("holder")
        .await?
        .acquire(&LockKey::new("nightly")?)
        .await?;
    let session = node.brief_session("cut off").await?;
    let waiter = session.enqueue(holding.key()).await?;
    let behind = observer
        .session("behind")
        .await?
        .enqueue(holding.key())
        .await?;
    faults.partition();
    assert!(holding.release().await?);
    let mut next = None;
    let limit = session.ttl().as_duration() + observer.hand_over_bound();
    scene
        .eventually("the next in line is granted", limit, async || {
            if let InsertOutcome::Granted(grant) = behind.try_again().await? {
                next = Some(behind.session.holding(behind.attempt, grant));
            }
            Ok(next.is_some())
        })
        .await?;
    faults.heal();
    let again = scene
        .within("an answer", ANSWER_LIMIT, waiter.try_again())
        .await;
    assert!(
        !matches!(
            again,
            Ok(InsertOutcome::Granted(_) | InsertOutcome::Queued(_))
        ),
        "{again:?}"
    );
    match next {
        Some(next) => next.stands().await,
        None => Ok(()),
    }
}

/// ABANDON-1, ALL-5, B37: an insert is caught at some moment of its way, for a free key or in a
/// queue; what of it arrives after its abandon does nothing.
pub(crate) async fn an_insert_caught_under_way_does_nothing_later(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let operator = scene.node().await;
    let holder = operator.session("holder").await?;
    let session = node.session("slow").await?;
    for moment in [0, 3, 10, 20, 30, 40, 50, 70].map(Duration::from_millis) {
        for contended in [false, true] {
            let key = LockKey::new(format!("{contended} after {moment:?}"))?;
            let holding = match contended {
                true => Some(holder.acquire(&key).await?),
                false => None,
            };
            if let Some(holding) = &holding {
                // From now on the store may know that a place is all there is to get.
                held_by(&session.try_acquire(&key).await?, holding);
            }
            let attempt = session.attempt();
            let (inserting, wanted) = (session.clone(), key.clone());
            let insert = scene
                .runtime()
                .run_to_end(async move { inserting.insert(&wanted, attempt, Queue::Join).await });
            scene.sleep(moment).await;
            faults.hold_requests();
            drop(insert.await);
            operator.store.abandon(&key, session.id(), attempt).await?;
            faults.release_requests();
            scene.settle().await;
            let held = usize::from(contended);
            scene.nothing_is_left_but(2 + held).await?;
            if let Some(holding) = holding {
                assert!(holding.release().await?);
            }
        }
    }
    Ok(())
}
