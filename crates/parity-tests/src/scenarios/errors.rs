//! A store that cannot be reached is an error, and never an outcome.

use std::fmt::Debug;

use lock_spi::{
    Effect, Error, ErrorKind, InsertOutcome, KeyPrefix, LockKey, PageRequest, Queue, RevokeTarget,
    Ttl,
};

use crate::scenario::Verdict;
use crate::scene::{ANSWER_LIMIT, Scene};
use crate::session::granted;

/// What a caller may learn of the effect of an operation that found no server.
enum Known {
    /// It only reads.
    Nothing,
    /// Its request may have arrived.
    Maybe,
    /// Either, depending on how far it came.
    Either,
}

/// Checks an answer out of a partition.
async fn unreachable<T: Debug>(
    scene: &Scene,
    what: &str,
    known: Known,
    call: impl Future<Output = lock_spi::Result<T>> + Send,
) -> Error {
    let error = match scene.within(what, ANSWER_LIMIT, call).await {
        Ok(outcome) => panic!("{what} had an outcome in a partition: {outcome:?}"),
        Err(error) => error,
    };
    let transient = [ErrorKind::Unavailable, ErrorKind::NotLeader];
    assert!(transient.contains(&error.kind()), "{what}: {error}");
    assert!(error.is_retryable(), "{what}: {error}");
    match known {
        Known::Nothing => assert_eq!(error.effect(), Effect::None, "{what}: {error}"),
        Known::Maybe => assert_eq!(error.effect(), Effect::Unknown, "{what}: {error}"),
        Known::Either => {}
    }
    error
}

/// ALL-1, ALL-2, ALL-3: cut off from its server, every operation ends within a limit, by an error
/// that says so; none of them answers `None`, `false` or `Held`.
pub(crate) async fn cut_off_every_operation_is_an_error(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("held")?).await?;
    let contended = scene
        .node()
        .await
        .session("other")
        .await?
        .acquire(&LockKey::new("contended")?)
        .await?;
    let waiter = session.enqueue(contended.key()).await?;
    let (free, store) = (LockKey::new("free")?, &node.store);
    let opening = node.open_request("late", Ttl::DEFAULT)?;
    let revoking = node.revoke_request(holding.key(), RevokeTarget::Whoever)?;
    let attempt = session.attempt();
    faults.partition();
    let open = store.open_session(opening);
    unreachable(&scene, "open_session", Known::Either, open).await;
    let renewal = session.keep_alive(&[&holding], &[holding.attempt, waiter.attempt]);
    unreachable(&scene, "keep_alive", Known::Maybe, renewal).await;
    let insert = session.insert(&free, attempt, Queue::Never);
    unreachable(&scene, "try_insert", Known::Either, insert).await;
    let again = waiter.try_again();
    unreachable(&scene, "try_insert of a waiter", Known::Either, again).await;
    unreachable(&scene, "extend", Known::Maybe, holding.extend()).await;
    unreachable(&scene, "delete_if_owner", Known::Either, holding.release()).await;
    let abandon = store.abandon(&free, session.id(), attempt);
    unreachable(&scene, "abandon", Known::Maybe, abandon).await;
    unreachable(&scene, "read", Known::Nothing, store.read(&free)).await;
    let (all, page) = (KeyPrefix::default(), PageRequest::default());
    let listing = store.list(&all, page.clone());
    unreachable(&scene, "list", Known::Nothing, listing).await;
    unreachable(&scene, "revoke", Known::Either, store.revoke(revoking)).await;
    let records = store.revocations(&free, page);
    unreachable(&scene, "revocations", Known::Nothing, records).await;
    unreachable(&scene, "close_session", Known::Maybe, session.close()).await;
    Ok(())
}

/// ALL-2, WAIT-2: cut off, a wait ends within the limit by an error without effect, or goes on
/// waiting; it never claims anything.
pub(crate) async fn cut_off_a_wait_has_no_effect(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let holding = scene
        .node()
        .await
        .session("holder")
        .await?
        .acquire(&LockKey::new("nightly")?)
        .await?;
    let waiter = node.session("waiter").await?.enqueue(holding.key()).await?;
    faults.partition();
    let answer = scene.runtime().timeout(ANSWER_LIMIT, waiter.wait()).await;
    if let Ok(Err(error)) = answer {
        assert_eq!(error.effect(), Effect::None, "{error}");
    }
    faults.heal();
    scene
        .insist(async || waiter.try_again().await)
        .await
        .map(crate::session::queued)?;
    holding.stands().await?;
    assert!(holding.release().await?);
    waiter.take().await?;
    Ok(())
}

/// ALL-2, KEEP-1, EXTEND-1, B19: after a partition within its ttl everything goes on, with the same
/// store object: nothing was lost, and new locks are granted.
pub(crate) async fn after_a_partition_everything_goes_on(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("held")?).await?;
    for _ in 0..2 {
        faults.partition();
        let renewal = session.renew(&[&holding]);
        unreachable(&scene, "keep_alive", Known::Maybe, renewal).await;
        unreachable(&scene, "extend", Known::Maybe, holding.extend()).await;
        faults.heal();
        let kept = scene
            .insist(async || session.renew(&[&holding]).await)
            .await?;
        assert!(kept.is_some_and(|kept| kept.gone.is_empty()));
        holding.stands().await?;
        let attempt = session.attempt();
        let key = LockKey::new("new")?;
        let grant = scene
            .insist(async || session.insert(&key, attempt, Queue::Never).await)
            .await
            .map(granted)?;
        assert!(session.holding(attempt, grant).release().await?);
    }
    assert!(holding.release().await?);
    scene.nothing_is_left_but(1).await
}

/// ALL-3, INSERT-3: an insert that met a partition: repeated with the same attempt it is granted
/// once; given up, it leaves nothing; and where its effect was `None`, nothing was done.
pub(crate) async fn an_insert_that_met_a_partition_is_settled_later(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let (repeated, abandoned) = (LockKey::new("repeated")?, LockKey::new("abandoned")?);
    let (again, over) = (session.attempt(), session.attempt());
    faults.partition();
    for (key, attempt) in [(&repeated, again), (&abandoned, over)] {
        let insert = session.insert(key, attempt, Queue::Join);
        unreachable(&scene, "try_insert", Known::Either, insert).await;
    }
    faults.heal();
    scene.settle().await;
    let grant = scene
        .insist(async || session.insert(&repeated, again, Queue::Join).await)
        .await
        .map(granted)?;
    let holding = session.holding(again, grant);
    scene
        .insist(async || node.store.abandon(&abandoned, session.id(), over).await)
        .await?;
    let outcome = session.insert(&abandoned, over, Queue::Join).await?;
    assert_eq!(outcome, InsertOutcome::Ended);
    holding.stands().await?;
    scene.nothing_is_left_but(2).await
}

/// ALL-1, CLOSE-2: a session whose close met a partition is closed later, with what it held.
pub(crate) async fn a_close_that_met_a_partition_is_repeated(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    faults.partition();
    unreachable(&scene, "close_session", Known::Maybe, session.close()).await;
    faults.heal();
    scene.insist(async || session.close().await).await?;
    holding.is_gone().await?;
    scene.nothing_is_left_but(0).await
}

/// ALL-2, DELETE-1: requests that are slow, but arrive, are answered truly or not at all.
pub(crate) async fn slow_answers_are_true_or_errors(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    for wait in [50, 400, 2_500].map(std::time::Duration::from_millis) {
        let key = LockKey::new(format!("held for {wait:?}"))?;
        let holding = session.acquire(&key).await?;
        faults.hold_requests();
        let (extending, releasing) = (holding.clone(), holding.clone());
        let extend = scene
            .runtime()
            .run_to_end(async move { extending.extend().await });
        scene.sleep(wait).await;
        faults.release_requests();
        match extend.await {
            Ok(Ok(grant)) => {
                assert_eq!(grant.map(|grant| grant.token), Some(holding.token()));
            }
            Ok(Err(error)) => assert!(error.is_retryable(), "{error}"),
            Err(lost) => panic!("{lost}"),
        }
        faults.hold_requests();
        let release = scene
            .runtime()
            .run_to_end(async move { releasing.release().await });
        scene.sleep(wait).await;
        faults.release_requests();
        match release.await {
            Ok(Ok(ended)) => assert!(ended),
            Ok(Err(error)) => {
                assert!(error.is_retryable(), "{error}");
                scene.insist(async || holding.release().await).await?;
            }
            Err(lost) => panic!("{lost}"),
        }
        holding.is_gone().await?;
        scene.nothing_is_left_but(1).await?;
    }
    Ok(())
}

/// INSERT-8, OPEN-2, B118: a store slower than the ttl gives a session with what is left of it, or
/// an error; never a grant that is over already.
pub(crate) async fn a_store_slower_than_the_ttl_grants_nothing_stale(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let ttl = node.store.descriptor().capabilities.min_ttl;
    let request = node.open_request("hasty", ttl)?;
    let session = request.session;
    let owner = request.owner.clone();
    faults.hold_requests();
    let store = std::sync::Arc::clone(&node.store);
    let asked = scene.runtime().now();
    let open = scene
        .runtime()
        .run_to_end(async move { store.open_session(request).await });
    scene.sleep(ttl.as_duration() * 2).await;
    faults.release_requests();
    let key = LockKey::new("nightly")?;
    let opened = match open.await {
        Ok(answer) => answer,
        Err(lost) => panic!("{lost}"),
    };
    match opened {
        Ok(lease) => {
            assert!(asked + lease.remaining >= asked);
            assert!(lease.remaining <= lease.ttl.as_duration());
            let session = crate::session::Session::new(node.clone(), owner, lease);
            let before = scene.runtime().now();
            if let Ok(InsertOutcome::Granted(grant)) =
                session.insert(&key, session.attempt(), Queue::Never).await
            {
                let left = grant.remaining.unwrap_or(ttl.as_duration());
                assert!(before + left > before, "over already");
            }
        }
        Err(error) => assert!(
            error.is_retryable() || error.kind() == ErrorKind::SessionGone,
            "{error}"
        ),
    }
    scene
        .insist(async || node.store.close_session(session).await)
        .await?;
    scene.nothing_is_left_but(0).await
}
