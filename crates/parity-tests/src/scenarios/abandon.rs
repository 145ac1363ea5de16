//! An attempt that is given up does nothing any more, late arrivals included.

use lock_spi::{InsertOutcome, LockKey, Queue};

use crate::scenario::Verdict;
use crate::scene::{ANSWER_LIMIT, Scene};
use crate::session::held_by;

/// ABANDON-1, INSERT-5: abandoning ends a grant as well as a place; the attempt is over.
pub(crate) async fn abandoning_ends_a_grant_as_well_as_a_place(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (key, session) = (LockKey::new("nightly")?, node.session("holder").await?);
    let holding = session.acquire(&key).await?;
    let other = node.session("other").await?;
    let waiter = other.enqueue(&key).await?;
    let store = &node.store;
    waiter.abandon().await?;
    assert_eq!(waiter.try_again().await?, InsertOutcome::Ended);
    holding.stands().await?;
    store.abandon(&key, session.id(), holding.attempt).await?;
    holding.is_gone().await?;
    let anew = other.acquire(&key).await?;
    assert!(anew.token() > holding.token());
    assert_eq!(holding.repeat().await?, InsertOutcome::Ended);
    assert!(anew.release().await?);
    scene.nothing_is_left_but(2).await
}

/// ABANDON-2: abandoning again, or what never was, is fine, also under a session that is gone.
pub(crate) async fn abandoning_what_is_not_there_is_fine(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let session = node.session("holder").await?;
    let store = &node.store;
    let never = session.attempt();
    for _ in 0..2 {
        store.abandon(&key, session.id(), never).await?;
    }
    let gone = node.session("gone").await?;
    let held = gone.acquire(&key).await?;
    gone.close().await?;
    store.abandon(&key, gone.id(), held.attempt).await?;
    store.abandon(&key, gone.id(), gone.attempt()).await?;
    scene.nothing_is_left_but(1).await
}

/// ABANDON-1, INSERT-5: an attempt that was abandoned before it was ever tried is over.
pub(crate) async fn an_attempt_abandoned_before_its_first_try_is_over(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let session = node.session("holder").await?;
    let attempt = session.attempt();
    node.store.abandon(&key, session.id(), attempt).await?;
    for queue in [Queue::Never, Queue::Join] {
        let outcome = session.insert(&key, attempt, queue).await?;
        assert_eq!(outcome, InsertOutcome::Ended);
    }
    scene.nothing_is_left_but(1).await
}

/// ABANDON-1, ALL-4: abandoning one attempt touches no other, of the same session or another.
pub(crate) async fn abandoning_touches_no_other_attempt(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let session = node.session("holder").await?;
    let holding = session.acquire(&key).await?;
    let waiter = session.enqueue(&key).await?;
    let refused = session.attempt();
    held_by(
        &session.insert(&key, refused, Queue::Never).await?,
        &holding,
    );
    node.store.abandon(&key, session.id(), refused).await?;
    holding.stands().await?;
    waiter.still_waits().await?;
    let elsewhere = session.acquire(&LockKey::new("hourly")?).await?;
    // The right attempt, but of another key.
    node.store
        .abandon(&key, session.id(), elsewhere.attempt)
        .await?;
    elsewhere.stands().await?;
    holding.stands().await
}

/// ABANDON-1, ALL-5: an insert that arrives after its attempt was abandoned, by whatever process,
/// does nothing.
pub(crate) async fn an_insert_that_arrives_after_its_abandon_does_nothing(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let operator = scene.node().await;
    let session = node.session("slow").await?;
    for queue in [Queue::Never, Queue::Join] {
        let key = LockKey::new(format!("{queue:?}"))?;
        let attempt = session.attempt();
        faults.hold_requests();
        let insert = session.insert(&key, attempt, queue);
        let answer = scene.within("an answer", ANSWER_LIMIT, insert).await;
        assert!(answer.is_err(), "nothing arrived: {answer:?}");
        operator.store.abandon(&key, session.id(), attempt).await?;
        faults.release_requests();
        scene.settle().await;
        assert_eq!(operator.holder(&key).await?, None);
        scene.nothing_is_left_but(1).await?;
    }
    Ok(())
}

/// ABANDON-1, ALL-5, B46: an abandon sent while its insert is still under way wins, whichever of
/// the two arrives first.
pub(crate) async fn an_abandon_overtakes_its_insert(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("slow").await?;
    for queue in [Queue::Never, Queue::Join] {
        let key = LockKey::new(format!("{queue:?}"))?;
        let attempt = session.attempt();
        faults.hold_requests();
        let insert = session.insert(&key, attempt, queue);
        let answer = scene.within("an answer", ANSWER_LIMIT, insert).await;
        assert!(answer.is_err(), "nothing arrived: {answer:?}");
        let abandon = node.store.abandon(&key, session.id(), attempt);
        let answer = scene.within("an answer", ANSWER_LIMIT, abandon).await;
        assert!(answer.is_err(), "nothing arrived: {answer:?}");
        faults.release_requests();
        scene
            .insist(async || node.store.abandon(&key, session.id(), attempt).await)
            .await?;
        scene.settle().await;
        let again = scene
            .insist(async || session.insert(&key, attempt, queue).await)
            .await?;
        assert_eq!(again, InsertOutcome::Ended);
        scene.nothing_is_left_but(1).await?;
        let next = scene
            .insist(async || session.insert(&key, session.attempt(), Queue::Never).await)
            .await?;
        crate::session::granted(next);
        assert!(session.keep_alive(&[], &[]).await?.is_some());
    }
    Ok(())
}

/// ALL-5, CLOSE-1, OPEN-3: requests of a session that arrive after its close bring nothing back.
pub(crate) async fn requests_that_arrive_after_a_close_bring_nothing_back(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let operator = scene.node().await;
    let session = node.session("slow").await?;
    let holding = session.acquire(&LockKey::new("held")?).await?;
    faults.hold_requests();
    let late_key = LockKey::new("late")?;
    let late = scene.within(
        "an answer",
        ANSWER_LIMIT,
        session.insert(&late_key, session.attempt(), Queue::Never),
    );
    assert!(late.await.is_err());
    assert!(holding.extend().await.is_err());
    scene.operator().end_session(session.id()).await;
    let next = operator
        .session("next")
        .await?
        .acquire(holding.key())
        .await?;
    faults.release_requests();
    scene.settle().await;
    assert_eq!(operator.holder(&late_key).await?, None);
    next.stands().await?;
    holding.is_gone().await?;
    scene.nothing_is_left_but(2).await
}
