//! An operator ends a grant.

use lock_spi::{
    FencingToken, GoneReason, LockKey, LockOutcome, PageRequest, Revocation, RevokeTarget,
};

use crate::scenario::{Stop, Verdict};
use crate::scene::{Node, Scene};

async fn all_records(node: &Node, key: &LockKey, limit: u32) -> Result<Vec<Revocation>, Stop> {
    let mut page = PageRequest { after: None, limit };
    let mut records = Vec::new();
    loop {
        let answer = node.store.revocations(key, page.clone()).await?;
        assert!(answer.entries.len() <= limit.try_into().unwrap_or(usize::MAX));
        records.extend(answer.entries);
        match answer.next {
            Some(next) => page.after = Some(next),
            None => return Ok(records),
        }
    }
}

const UNCHANGED: fn(Option<FencingToken>) -> LockOutcome = |floor| LockOutcome {
    revoked: false,
    previous_token: None,
    previous_owner: None,
    new_token_floor: floor,
};

/// REVOKE-1, REVOKE-5, RECORDS-1: a revoke ends the grant, names it, and raises the floor; the next
/// grant is above the floor, and there is one record.
pub(crate) async fn a_revoke_ends_the_grant_and_raises_the_floor(scene: Scene) -> Verdict {
    let (here, operator) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let session = here.session("holder").await?;
    let holding = session.acquire(&key).await?;
    let request = operator.revoke_request(&key, RevokeTarget::Grant(holding.token()))?;
    let outcome = operator.store.revoke(request.clone()).await?;
    assert!(outcome.revoked);
    assert_eq!(outcome.previous_token, Some(holding.token()));
    assert_eq!(outcome.previous_owner.as_ref(), Some(session.owner()));
    assert!(outcome.new_token_floor > Some(holding.token()));
    holding.is_gone().await?;
    let next = here.session("next").await?.acquire(&key).await?;
    assert!(Some(next.token()) > outcome.new_token_floor);
    next.stands().await?;
    let records = all_records(&here, &key, 100).await?;
    let [record] = &records[..] else {
        panic!("one revoke, one record: {records:?}");
    };
    assert_eq!(record.id, request.id);
    assert_eq!(record.key, key);
    assert_eq!(record.by, request.by);
    assert_eq!(record.reason, request.reason);
    assert_eq!(record.outcome, outcome);
    Ok(())
}

/// REVOKE-2, ALL-5: repeated, a revoke answers its first outcome, whatever happened since, and ends
/// nothing.
pub(crate) async fn a_repeated_revoke_answers_its_first_outcome(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    for target_token in [true, false] {
        let session = node.session("holder").await?;
        let holding = session.acquire(&key).await?;
        let target = match target_token {
            true => RevokeTarget::Grant(holding.token()),
            false => RevokeTarget::Whoever,
        };
        let request = node.revoke_request(&key, target)?;
        let first = node.store.revoke(request.clone()).await?;
        assert!(first.revoked);
        assert_eq!(node.store.revoke(request.clone()).await?, first);
        let later = session.acquire(&key).await?;
        let elsewhere = scene.node().await;
        assert_eq!(elsewhere.store.revoke(request.clone()).await?, first);
        later.stands().await?;
        assert!(node.revoke(&key).await?.revoked);
        assert_eq!(node.store.revoke(request).await?, first);
    }
    assert_eq!(all_records(&node, &key, 100).await?.len(), 4);
    Ok(())
}

/// REVOKE-3, ALL-4, RECORDS-1, B161: a revoke of a grant that no longer stands changes nothing,
/// whoever holds the key now, and leaves no record.
pub(crate) async fn a_revoke_of_what_has_ended_changes_nothing(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let session = node.session("holder").await?;
    let old = session.acquire(&key).await?;
    assert!(old.release().await?);
    let free = node.revoke_request(&key, RevokeTarget::Grant(old.token()))?;
    assert_eq!(node.store.revoke(free).await?, UNCHANGED(None));
    let present = session.acquire(&key).await?;
    let stale = node.revoke_request(&key, RevokeTarget::Grant(old.token()))?;
    assert_eq!(node.store.revoke(stale).await?, UNCHANGED(None));
    present.stands().await?;
    assert_eq!(all_records(&node, &key, 100).await?, []);
    Ok(())
}

/// REVOKE-4, REVOKE-5: revoking whoever holds a free key raises its floor all the same.
pub(crate) async fn a_revoke_of_a_free_key_raises_the_floor(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let session = node.session("holder").await?;
    let before = session.acquire(&key).await?;
    assert!(before.release().await?);
    let outcome = node.revoke(&key).await?;
    assert!(!outcome.revoked);
    assert_eq!(outcome.previous_token, None);
    assert_eq!(outcome.previous_owner, None);
    assert!(outcome.new_token_floor > Some(before.token()));
    let next = session.acquire(&key).await?;
    assert!(Some(next.token()) > outcome.new_token_floor);
    assert_eq!(all_records(&node, &key, 100).await?.len(), 1);
    Ok(())
}

/// RECORDS-1: the records of a key are told newest first, page by page, and no other key's.
pub(crate) async fn records_are_told_newest_first_and_in_pages(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (key, other) = (LockKey::new("nightly")?, LockKey::new("nightly/2")?);
    let session = node.session("holder").await?;
    let mut revoked = Vec::new();
    for round in 0..7 {
        if round % 2 == 0 {
            session.acquire(&key).await?;
        }
        let request = node.revoke_request(&key, RevokeTarget::Whoever)?;
        let outcome = node.store.revoke(request.clone()).await?;
        assert_eq!(outcome.revoked, round % 2 == 0);
        revoked.insert(0, (request.id, outcome));
        node.revoke(&other).await?;
    }
    for limit in [1, 3, 100] {
        let told: Vec<_> = all_records(&node, &key, limit)
            .await?
            .into_iter()
            .map(|record| (record.id, record.outcome))
            .collect();
        assert_eq!(told, revoked);
    }
    Ok(())
}

/// REVOKE-1, KEEP-2: the holder learns from its next renewal who revoked it and why, and its other
/// grants are kept.
pub(crate) async fn the_holder_is_told_who_revoked_it_and_why(scene: Scene) -> Verdict {
    let (here, operator) = (scene.node().await, scene.node().await);
    let session = here.session("holder").await?;
    let lost = session.acquire(&LockKey::new("nightly")?).await?;
    let kept = session.acquire(&LockKey::new("hourly")?).await?;
    let request = operator.revoke_request(lost.key(), RevokeTarget::Whoever)?;
    assert!(operator.store.revoke(request.clone()).await?.revoked);
    let answer = session.renew(&[&lost, &kept]).await?;
    let Some(answer) = answer else {
        panic!("the session stands");
    };
    let [gone] = &answer.gone[..] else {
        panic!("one grant is gone: {:?}", answer.gone);
    };
    assert_eq!((&gone.key, gone.token), (lost.key(), lost.token()));
    let GoneReason::Revoked { by, reason } = &gone.why else {
        panic!("it was revoked");
    };
    assert_eq!((by, reason), (&request.by, &request.reason));
    kept.stands().await
}

/// REVOKE-1, REVOKE-5: a revoke lets the first in line take its turn, above the new floor.
pub(crate) async fn a_revoke_lets_the_next_in_line_through(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let first = node.session("first").await?.enqueue(&key).await?;
    let second = node.session("second").await?.enqueue(&key).await?;
    let outcome = node.revoke(&key).await?;
    assert_eq!(outcome.previous_token, Some(holding.token()));
    second.still_waits().await?;
    let next = first.take().await?;
    assert!(Some(next.token()) > outcome.new_token_floor);
    Ok(())
}
