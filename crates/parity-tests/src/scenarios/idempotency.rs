//! A reply that was lost is repaired by repeating the call.

use lock_spi::{ErrorKind, InsertOutcome, LockKey, PageRequest, Queue, RevokeTarget, Ttl};

use crate::scenario::Verdict;
use crate::scene::Scene;
use crate::session::{Session, granted, queued};

/// How many replies in a row are lost, at most: more than a store may have on one call.
const LOST: std::ops::RangeInclusive<u32> = 1..=4;

/// INSERT-3, ALL-1, B58: the reply to an insert is lost; repeated with the same attempt it finds
/// the one grant, which one release ends.
pub(crate) async fn an_insert_whose_reply_was_lost_finds_its_grant(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    for lost in LOST {
        let key = LockKey::new(format!("lost {lost}"))?;
        let attempt = session.attempt();
        faults.lose_next_replies(lost);
        let outcome = scene
            .insist(async || session.insert(&key, attempt, Queue::Never).await)
            .await?;
        faults.heal();
        let holding = session.holding(attempt, granted(outcome));
        holding.stands().await?;
        let again = granted(holding.repeat().await?);
        assert_eq!(again.token, holding.token(), "one grant");
        scene.nothing_is_left_but(2).await?;
        assert!(holding.release().await?);
        scene.nothing_is_left_but(1).await?;
    }
    Ok(())
}

/// INSERT-3, INSERT-7, B46: the reply to an insert that queues is lost; repeated it finds the one
/// place.
pub(crate) async fn an_insert_whose_reply_was_lost_finds_its_place(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("waiter").await?;
    let key = LockKey::new("nightly")?;
    let holder = scene.node().await.session("holder").await?;
    for lost in LOST {
        let holding = holder.acquire(&key).await?;
        let attempt = session.attempt();
        faults.lose_next_replies(lost);
        let outcome = scene
            .insist(async || session.insert(&key, attempt, Queue::Join).await)
            .await?;
        faults.heal();
        let place = queued(outcome);
        let again = queued(session.insert(&key, attempt, Queue::Join).await?);
        assert_eq!(again.position, place.position);
        scene.nothing_is_left_but(4).await?;
        assert!(holding.release().await?);
        let next = granted(session.insert(&key, attempt, Queue::Join).await?);
        let next = session.holding(attempt, next);
        assert!(next.release().await?);
        scene.nothing_is_left_but(2).await?;
    }
    Ok(())
}

/// INSERT-3: the reply to a waiter's turn is lost; repeated it finds the one grant.
pub(crate) async fn a_turn_whose_reply_was_lost_finds_its_grant(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("waiter").await?;
    let key = LockKey::new("nightly")?;
    let holder = scene.node().await.session("holder").await?;
    for lost in LOST {
        let holding = holder.acquire(&key).await?;
        let waiter = session.enqueue(&key).await?;
        assert!(holding.release().await?);
        faults.lose_next_replies(lost);
        let outcome = scene.insist(async || waiter.try_again().await).await?;
        faults.heal();
        let next = session.holding(waiter.attempt, granted(outcome));
        next.stands().await?;
        scene.nothing_is_left_but(3).await?;
        assert!(next.release().await?);
    }
    Ok(())
}

/// INSERT-5: an insert whose reply was lost and whose grant was ended meanwhile is not granted
/// again by the process that asked.
pub(crate) async fn an_insert_repeated_after_its_grant_ended_is_over(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let operator = scene.node().await;
    let session = node.session("holder").await?;
    let key = LockKey::new("nightly")?;
    let attempt = session.attempt();
    // So many that the store cannot learn of its grant within the call.
    faults.lose_next_replies(1_000);
    let unanswered = session.insert(&key, attempt, Queue::Never).await;
    faults.heal();
    assert!(unanswered.is_err(), "{unanswered:?}");
    assert!(operator.holder(&key).await?.is_some(), "it was applied");
    assert!(operator.revoke(&key).await?.revoked);
    let again = scene
        .insist(async || session.insert(&key, attempt, Queue::Never).await)
        .await?;
    assert_eq!(again, InsertOutcome::Ended);
    scene.nothing_is_left_but(1).await
}

/// EXTEND-1, ALL-2, B56: the reply to an extend is lost; the next one answers the same token.
pub(crate) async fn an_extend_whose_reply_was_lost_loses_nothing(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    for lost in LOST {
        faults.lose_next_replies(lost);
        let extended = scene.insist(async || holding.extend().await).await?;
        faults.heal();
        assert_eq!(extended.map(|grant| grant.token), Some(holding.token()));
    }
    assert!(holding.release().await?);
    Ok(())
}

/// DELETE-1, DELETE-2, ALL-5, B01, B59: the reply to a release is lost and the same session takes
/// the key again; repeating the release ends nothing.
pub(crate) async fn a_release_whose_reply_was_lost_ends_one_grant(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let third = scene.node().await.session("third").await?;
    let session = node.session("holder").await?;
    let key = LockKey::new("nightly")?;
    for lost in LOST {
        let first = session.acquire(&key).await?;
        faults.lose_next_replies(lost);
        // Whether it is told or not: the key is free afterwards.
        let told = first.release().await;
        faults.heal();
        if told.is_err() {
            scene.insist(async || first.release().await).await?;
        }
        let second = session.acquire(&key).await?;
        assert!(second.token() > first.token());
        assert!(!first.release().await?, "it ended before");
        second.stands().await?;
        crate::session::held_by(&third.try_acquire(&key).await?, &second);
        assert!(second.release().await?);
    }
    Ok(())
}

/// DELETE-1, ALL-2, B59: a release whose request was lost is an error, or was repeated by the
/// store; it is never `false` while the grant stands.
pub(crate) async fn a_release_whose_request_was_lost_is_repeated(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let key = LockKey::new("nightly")?;
    for lost in LOST {
        let holding = session.acquire(&key).await?;
        faults.lose_next_requests(lost);
        let ended = scene.insist(async || holding.release().await).await?;
        faults.heal();
        assert!(ended, "it stood until now");
        scene.nothing_is_left_but(1).await?;
    }
    Ok(())
}

/// REVOKE-2, RECORDS-1, B62: the reply to a revoke is lost; repeated with the same id it answers
/// what the first one did, and there is one record.
pub(crate) async fn a_revoke_whose_reply_was_lost_happens_once(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = scene.node().await.session("holder").await?;
    for lost in LOST {
        let key = LockKey::new(format!("lost {lost}"))?;
        let holding = session.acquire(&key).await?;
        let request = node.revoke_request(&key, RevokeTarget::Whoever)?;
        faults.lose_next_replies(lost);
        let outcome = scene
            .insist(async || node.store.revoke(request.clone()).await)
            .await?;
        faults.heal();
        assert!(outcome.revoked);
        assert_eq!(outcome.previous_token, Some(holding.token()));
        assert_eq!(node.store.revoke(request.clone()).await?, outcome);
        let records = node.store.revocations(&key, PageRequest::default()).await?;
        assert_eq!(records.entries.len(), 1);
        holding.is_gone().await?;
    }
    Ok(())
}

/// ABANDON-1, ABANDON-2: the reply to an abandon is lost; repeated it is fine, and the attempt is
/// over.
pub(crate) async fn an_abandon_whose_reply_was_lost_is_repeated(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let abandon = async |session: &Session, key: &LockKey, attempt| {
        scene
            .insist(async || node.store.abandon(key, session.id(), attempt).await)
            .await
    };
    for lost in LOST {
        let key = LockKey::new(format!("lost {lost}"))?;
        let holding = session.acquire(&key).await?;
        let waiter = session.enqueue(&key).await?;
        faults.lose_next_replies(lost);
        abandon(&session, &key, waiter.attempt).await?;
        faults.lose_next_replies(lost);
        abandon(&session, &key, holding.attempt).await?;
        faults.heal();
        assert_eq!(waiter.try_again().await?, InsertOutcome::Ended);
        assert_eq!(holding.repeat().await?, InsertOutcome::Ended);
        scene.nothing_is_left_but(1).await?;
    }
    Ok(())
}

/// OPEN-1: the reply to an opening is lost; repeated with the same id it is the same session.
pub(crate) async fn an_opening_whose_reply_was_lost_is_repeated(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    for lost in LOST {
        let request = node.open_request("holder", Ttl::DEFAULT)?;
        faults.lose_next_replies(lost);
        let asked = scene.runtime().now();
        let lease = scene
            .insist(async || node.store.open_session(request.clone()).await)
            .await?;
        faults.heal();
        assert!(lease.ttl >= request.ttl);
        assert!(asked + lease.remaining <= scene.runtime().now() + lease.ttl.as_duration());
        let session = Session::new(node.clone(), request.owner, lease);
        session.acquire(&LockKey::new("nightly")?).await?;
        session.close().await?;
        scene.nothing_is_left_but(0).await?;
    }
    Ok(())
}

/// CLOSE-1, CLOSE-2, OPEN-3: the reply to a close is lost; repeated it is fine, and nothing is
/// left.
pub(crate) async fn a_close_whose_reply_was_lost_is_repeated(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    for lost in LOST {
        let session = node.session("holder").await?;
        let holding = session.acquire(&LockKey::new("nightly")?).await?;
        faults.lose_next_replies(lost);
        scene.insist(async || session.close().await).await?;
        faults.heal();
        let request = lock_spi::OpenSessionRequest {
            session: session.id(),
            owner: session.owner().clone(),
            ttl: session.ttl(),
        };
        let again = node.store.open_session(request).await;
        crate::session::refused(again, ErrorKind::SessionGone);
        holding.is_gone().await?;
        scene.nothing_is_left_but(0).await?;
    }
    Ok(())
}

/// KEEP-1, KEEP-2, ALL-2, B56: the reply to a renewal is lost; the next one keeps everything.
pub(crate) async fn a_renewal_whose_reply_was_lost_loses_nothing(scene: Scene) -> Verdict {
    let (node, faults) = scene.faulty_node().await?;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    for lost in LOST {
        faults.lose_next_replies(lost);
        let kept = scene
            .insist(async || session.renew(&[&holding]).await)
            .await?;
        faults.heal();
        assert!(kept.is_some_and(|kept| kept.gone.is_empty()));
        holding.stands().await?;
    }
    Ok(())
}
