//! Sessions that go from one process to another.

use lock_spi::{
    ErrorKind, InsertOutcome, KeepAliveRequest, LockKey, OpenSessionRequest, Queue, SessionId,
};

use crate::scenario::Verdict;
use crate::scene::Scene;
use crate::session::refused;

/// ADOPT-1: the grants and places of an adopted session stand, the grants with the same tokens, and
/// are kept by who has adopted it.
pub(crate) async fn an_adopted_session_keeps_what_it_has(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let session = here.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let other = here.session("other").await?;
    let wanted = other.acquire(&LockKey::new("wanted")?).await?;
    let waiting = session.enqueue(wanted.key()).await?;

    let lease = there.store.adopt_session(session.id()).await?;
    let lease = lease.expect("it stands");
    assert_eq!(lease.session, session.id());
    assert!(lease.remaining <= lease.ttl.as_duration() && !lease.remaining.is_zero());
    let extended = there.store.extend(holding.key(), holding.token()).await?;
    assert_eq!(extended.expect("it stands").token, holding.token());
    let request = KeepAliveRequest {
        session: session.id(),
        grants: vec![holding.named()],
        attempts: vec![holding.attempt, waiting.attempt],
    };
    let kept = there.store.keep_alive(request).await?;
    assert_eq!(kept.expect("it stands").gone, []);
    holding.stands().await?;

    assert!(wanted.release().await?);
    let request = session.insert_request(wanted.key(), waiting.attempt, Queue::Join);
    let InsertOutcome::Granted(grant) = there.store.try_insert(request).await? else {
        panic!("its place has gone");
    };
    assert!(grant.token > wanted.token());
    for (key, token) in [
        (holding.key(), holding.token()),
        (wanted.key(), grant.token),
    ] {
        assert!(there.store.delete_if_owner(key, token).await?);
    }
    there.store.close_session(session.id()).await?;
    Ok(())
}

/// ADOPT-2, ALL-5: what is gone is not adopted: neither a session that was closed nor one that never
/// was.
pub(crate) async fn a_session_that_is_gone_is_not_adopted(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let closed = here.session("closed").await?;
    let holding = closed.acquire(&LockKey::new("nightly")?).await?;
    closed.close().await?;
    let unknown = SessionId::random(&**scene.runtime());
    for gone in [closed.id(), unknown] {
        for node in [&there, &here] {
            assert_eq!(node.store.adopt_session(gone).await?, None);
        }
    }
    let other = there.session("other").await?.acquire(holding.key()).await?;
    assert!(other.token() > holding.token());
    let again = OpenSessionRequest {
        session: closed.id(),
        owner: closed.owner().clone(),
        ttl: closed.ttl(),
    };
    refused(here.store.open_session(again).await, ErrorKind::SessionGone);
    Ok(())
}

/// ADOPT-3: adopting is repeated as one likes, and changes nothing for who has the session already.
pub(crate) async fn adopting_again_is_fine(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let session = here.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    for node in [&here, &there, &there, &here, &there] {
        let lease = node.store.adopt_session(session.id()).await?;
        assert_eq!(lease.expect("it stands").session, session.id());
        holding.stands().await?;
    }
    assert!(
        there
            .store
            .delete_if_owner(holding.key(), holding.token())
            .await?
    );
    Ok(())
}
