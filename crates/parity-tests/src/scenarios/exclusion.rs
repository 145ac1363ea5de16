//! At most one grant of a key stands at any moment.

use std::time::Duration;

use lock_spi::{InsertOutcome, LockKey, Payload, Queue, Ttl};

use crate::scenario::Verdict;
use crate::scene::Scene;
use crate::session::{granted, held_by};

/// INSERT-1: while a grant stands, others are told `Held`, whatever process they are in.
pub(crate) async fn a_key_that_is_held_is_refused_to_others(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let holding = here.session("holder").await?.acquire(&key).await?;
    let neighbour = here.session("neighbour").await?;
    let stranger = there.session("stranger").await?;
    for session in [&neighbour, &stranger] {
        held_by(&session.try_acquire(&key).await?, &holding);
    }
    holding.stands().await?;
    assert!(holding.release().await?);
    let next = stranger.acquire(&key).await?;
    assert!(next.token() > holding.token());
    held_by(&neighbour.try_acquire(&key).await?, &next);
    Ok(())
}

/// INSERT-1, B179: of many who ask in the same moment one is granted, and the others get no error.
pub(crate) async fn of_many_who_ask_at_once_one_is_granted(scene: Scene) -> Verdict {
    const ASKING: usize = 24;
    let key = LockKey::new("nightly")?;
    let nodes = [scene.node().await, scene.node().await, scene.node().await];
    let mut sessions = Vec::new();
    for node in nodes.iter().cycle().take(ASKING) {
        sessions.push(node.session("one of many").await?);
    }
    let asked: Vec<_> = sessions
        .iter()
        .map(|session| {
            let (session, key) = (session.clone(), key.clone());
            scene.runtime().run_to_end(async move {
                let attempt = session.attempt();
                session.insert(&key, attempt, Queue::Never).await
            })
        })
        .collect();
    let mut grants = 0;
    for (session, answer) in sessions.iter().zip(asked) {
        match crate::scene::joined(answer).await? {
            InsertOutcome::Granted(grant) => {
                assert_eq!(grant.session, session.id());
                grants += 1;
            }
            InsertOutcome::Held(_) => {}
            other => panic!("neither granted nor held: {other:?}"),
        }
    }
    assert_eq!(grants, 1);
    Ok(())
}

/// INSERT-6, B140: another attempt of the same session is told `Held`.
pub(crate) async fn a_session_excludes_its_own_other_attempts(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let key = LockKey::new("nightly")?;
    let holding = session.acquire(&key).await?;
    held_by(&session.try_acquire(&key).await?, &holding);
    held_by(&session.try_acquire(&key).await?, &holding);
    holding.stands().await
}

/// INSERT-3: the attempt that was granted is granted again, with the same token, however it asks.
pub(crate) async fn an_attempt_that_is_repeated_finds_its_grant(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let key = LockKey::new("nightly")?;
    let holding = session.acquire(&key).await?;
    for queue in [Queue::Never, Queue::Join, Queue::Never] {
        let again = granted(session.insert(&key, holding.attempt, queue).await?);
        assert_eq!(again.token, holding.token());
        assert_eq!(again.session, session.id());
    }
    assert!(holding.release().await?);
    scene.nothing_is_left_but(1).await
}

/// INSERT-1, INSERT-6, B67, B139: two sessions of one owner exclude each other; a grant belongs to
/// the session that asked, and the end of the other one does not touch it.
pub(crate) async fn sessions_of_one_owner_exclude_each_other(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let old = node.session("twin").await?;
    let new = node.session("twin").await?;
    let stale = old.acquire(&key).await?;
    held_by(&new.try_acquire(&key).await?, &stale);
    scene.operator().end_session(old.id()).await;
    let fresh = new.acquire(&key).await?;
    old.close().await?;
    assert_eq!(stale.extend().await?, None);
    assert!(!stale.release().await?);
    fresh.stands().await
}

/// INSERT-1, B109: how long a holder is safe is decided by its own ttl, not by that of who waits.
pub(crate) async fn the_ttl_of_who_asks_does_not_matter(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("patient").await?.acquire(&key).await?;
    let ttl = node.store.descriptor().capabilities.min_ttl;
    let asking = node.session_of("hasty", ttl).await?;
    for _ in 0..4 {
        scene.sleep(ttl.as_duration() / 2).await;
        held_by(&asking.try_acquire(&key).await?, &holding);
        assert!(asking.keep_alive(&[], &[]).await?.is_some());
    }
    holding.stands().await
}

/// KEEP-1, OPEN-2, B122: until the deadline that the holder counts from before it asked, nobody
/// else is granted; wherever in a second it began.
pub(crate) async fn nobody_is_granted_before_the_holders_deadline(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let other = node.session("other").await?;
    for offset in [0, 10, 500, 990].map(Duration::from_millis) {
        scene.sleep(offset).await;
        let key = LockKey::new(format!("offset {offset:?}"))?;
        let session = node.brief_session("holder").await?;
        let holding = session.acquire(&key).await?;
        let asked = scene.runtime().now();
        let Some(kept) = session.renew(&[&holding]).await? else {
            panic!("an open session was not kept");
        };
        assert!(kept.remaining <= session.ttl().as_duration());
        let deadline = asked + kept.remaining;
        let token = loop {
            let outcome = other.try_acquire(&key).await?;
            let answered = scene.runtime().now();
            match outcome {
                InsertOutcome::Granted(grant) => {
                    assert!(answered >= deadline, "granted before the deadline");
                    break grant.token;
                }
                _ => scene.sleep(Duration::from_millis(50)).await,
            }
            let latest = deadline + node.hand_over_bound();
            assert!(answered <= latest, "not granted after the deadline");
        };
        assert!(token > holding.token());
    }
    Ok(())
}

/// INSERT-1, B97: being refused, however often, stores nothing.
pub(crate) async fn refusals_leave_nothing_behind(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let asking = node.session("asking").await?;
    let before = scene.operator().residue().await;
    for _ in 0..500 {
        held_by(&asking.try_acquire(&key).await?, &holding);
    }
    assert_eq!(scene.operator().residue().await, before);
    assert!(holding.release().await?);
    scene.nothing_is_left_but(2).await
}

/// INSERT-2, ALL-5, B68: the session whose entry an operator deleted takes the key anew in the same
/// moment; the new grant stands under its own token, and the old one is dead.
pub(crate) async fn a_key_deleted_by_hand_is_granted_anew(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let key = LockKey::new("nightly")?;
    let lost = session.acquire(&key).await?;
    scene.operator().delete_lock(&key).await;
    let anew = session.acquire(&key).await?;
    assert!(anew.token() > lost.token());
    lost.is_gone().await?;
    anew.stands().await?;
    assert!(anew.release().await?);
    scene.nothing_is_left_but(1).await
}

/// INSERT-1: who is refused may learn who holds the key, and what it shows.
pub(crate) async fn a_holder_shows_its_owner_and_payload(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let session = node.session_of("shard 7 of 12", Ttl::DEFAULT).await?;
    let mut request = session.insert_request(&key, session.attempt(), Queue::Never);
    request.payload = Payload::new(vec![0, 1, 0xff])?;
    let payload = request.payload.clone();
    let grant = granted(node.store.try_insert(request).await?);
    let holding = session.holding(session.attempt(), grant);
    let refusal = node.session("other").await?.try_acquire(&key).await?;
    held_by(&refusal, &holding);
    let told = match refusal {
        InsertOutcome::Held(Some(holder)) => Some(holder),
        _ => None,
    };
    let read = node.holder(&key).await?;
    assert!(read.is_some(), "a reader sees the holder");
    for holder in told.iter().chain(&read) {
        assert_eq!(holder.token, holding.token());
        assert_eq!(holder.owner, *session.owner());
        assert_eq!(holder.session, session.id());
        assert_eq!(holder.payload, payload);
        assert!(!holder.granted_at.is_zero());
    }
    Ok(())
}
