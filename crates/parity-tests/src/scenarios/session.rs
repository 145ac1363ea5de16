//! Sessions: opened, kept alive, closed; and with them everything that they hold.

use std::time::Duration;

use lock_spi::{
    ErrorKind, GoneReason, InsertOutcome, KeptAlive, LockKey, OpenSessionRequest, Queue, Ttl,
};

use crate::scenario::{Stop, Verdict};
use crate::scene::{Scene, poll_once};
use crate::session::{Session, held_by, refused};

/// The request that opened a session.
fn opening(session: &Session) -> OpenSessionRequest {
    OpenSessionRequest {
        session: session.id(),
        owner: session.owner().clone(),
        ttl: session.ttl(),
    }
}

fn kept(answer: Option<KeptAlive>) -> Result<KeptAlive, Stop> {
    match answer {
        Some(kept) => Ok(kept),
        None => panic!("the session stands"),
    }
}

/// OPEN-1: opened again with the same id, it is the same session, and what it holds stands.
pub(crate) async fn a_repeated_open_answers_the_same_session(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    for _ in 0..2 {
        let again = node.store.open_session(opening(&session)).await?;
        assert_eq!(again.session, session.id());
        assert_eq!(again.ttl, session.ttl());
        assert!(again.remaining <= again.ttl.as_duration());
        assert!(!again.remaining.is_zero());
    }
    holding.stands().await?;
    scene.nothing_is_left_but(2).await
}

/// OPEN-2, B118, B121: a ttl is lengthened where it must be, never shortened, and the real one is
/// told.
pub(crate) async fn a_ttl_is_never_shortened(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let capabilities = node.store.descriptor().capabilities;
    let granularity = capabilities.ttl_granularity;
    for asked in [
        Ttl::MIN,
        Ttl::new(Duration::from_millis(1500))?,
        Ttl::new(Duration::from_millis(2001))?,
        Ttl::DEFAULT,
        Ttl::MAX,
    ] {
        let session = node.session_of("holder", asked).await?;
        let told = session.ttl();
        assert!(told >= asked && told >= capabilities.min_ttl);
        let least = asked.max(capabilities.min_ttl).as_duration();
        assert!(told.as_duration() < least + granularity.max(Duration::from_millis(1)));
        let remaining = kept(session.keep_alive(&[], &[]).await?)?.remaining;
        assert!(remaining <= told.as_duration());
        session.close().await?;
    }
    Ok(())
}

/// OPEN-2, B118, B119: a ttl that is out of range is refused before any store sees it, by an error
/// that names the range; the greatest and the least are taken.
pub(crate) async fn a_ttl_out_of_range_reaches_no_store(scene: Scene) -> Verdict {
    let node = scene.node().await;
    for duration in [
        Duration::ZERO,
        Duration::from_millis(1),
        Duration::from_millis(5),
        Ttl::MIN.as_duration() - Duration::from_nanos(1),
        Ttl::MAX.as_duration() + Duration::from_nanos(1),
        Duration::from_millis(1 << 50),
        Duration::from_secs(100 * 365 * 24 * 60 * 60),
        Duration::from_millis(u64::MAX),
        Duration::from_secs(i64::MAX.unsigned_abs()),
        Duration::MAX,
    ] {
        let Err(refusal) = Ttl::new(duration) else {
            panic!("{duration:?} was taken");
        };
        assert!(refusal.to_string().contains("1 s to 24 h"), "{refusal}");
    }
    for ttl in [Ttl::MIN, Ttl::MAX] {
        node.session_of("holder", ttl).await?.close().await?;
    }
    scene.nothing_is_left_but(0).await
}

/// OPEN-3, CLOSE-2, ALL-5: a session that was closed is never opened again; closing it again is
/// fine.
pub(crate) async fn a_closed_session_stays_closed(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    session.close().await?;
    session.close().await?;
    let again = node.store.open_session(opening(&session)).await;
    refused(again, ErrorKind::SessionGone);
    assert_eq!(session.keep_alive(&[], &[]).await?, None);
    session.close().await?;
    scene.nothing_is_left_but(0).await
}

/// CLOSE-2: closing what never was, or what has expired, is fine.
pub(crate) async fn closing_what_is_not_open_is_fine(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let never = node.open_request("nobody", Ttl::DEFAULT)?;
    node.store.close_session(never.session).await?;
    let killed = node.session("killed").await?;
    scene.operator().end_session(killed.id()).await;
    killed.close().await?;
    scene.nothing_is_left_but(0).await
}

/// OPEN-4: a session belongs to the store object that opened it; to another it is `InvalidRequest`,
/// and stays what it was.
pub(crate) async fn a_session_of_another_process_is_refused(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let session = here.session("holder").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    let stolen = there.store.open_session(opening(&session)).await;
    refused(stolen, ErrorKind::InvalidRequest);
    holding.stands().await?;
    assert!(session.renew(&[&holding]).await?.is_some());
    Ok(())
}

/// CLOSE-1, INSERT-8: closing a session ends all its grants and places at once, and nobody else's.
pub(crate) async fn closing_a_session_ends_all_that_it_has(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (session, other) = (node.session("closing").await?, node.session("other").await?);
    let wanted = other.acquire(&LockKey::new("wanted")?).await?;
    let waiter = session.enqueue(wanted.key()).await?;
    let behind = node.session("behind").await?.enqueue(wanted.key()).await?;
    let mut holdings = Vec::new();
    for name in ["one", "two", "three"] {
        holdings.push(session.acquire(&LockKey::new(name)?).await?);
    }
    session.close().await?;
    for holding in &holdings {
        let next = other.acquire(holding.key()).await?;
        assert!(next.token() > holding.token());
        holding.is_gone().await?;
        next.stands().await?;
    }
    refused(waiter.try_again().await, ErrorKind::SessionGone);
    refused(
        session
            .insert(wanted.key(), session.attempt(), Queue::Join)
            .await,
        ErrorKind::SessionGone,
    );
    wanted.stands().await?;
    assert!(wanted.release().await?);
    behind.take().await?;
    Ok(())
}

/// KEEP-4, CLOSE-1, B20: a session ended behind its holder is gone, and so is what it held.
pub(crate) async fn keeping_a_killed_session_is_none(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("killed").await?;
    let holding = session.acquire(&LockKey::new("nightly")?).await?;
    scene.operator().end_session(session.id()).await;
    for _ in 0..3 {
        let answer = session.renew(&[&holding]).await?;
        assert_eq!(answer, None);
    }
    scene.nothing_is_left_but(0).await?;
    holding.is_gone().await
}

/// KEEP-2, ALL-4: a renewal names exactly the grants that have ended, each by its token, and keeps
/// the others.
pub(crate) async fn a_renewal_names_exactly_what_is_gone(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let stands = session.acquire(&LockKey::new("stands")?).await?;
    let deleted = session.acquire(&LockKey::new("deleted")?).await?;
    let released = session.acquire(&LockKey::new("released")?).await?;
    let revoked = session.acquire(&LockKey::new("revoked")?).await?;
    scene.operator().delete_lock(deleted.key()).await;
    assert!(released.release().await?);
    let anew = session.acquire(released.key()).await?;
    assert!(node.revoke(revoked.key()).await?.revoked);
    let elsewhere = node.session("other").await?.acquire(deleted.key()).await?;
    let listed = [&stands, &deleted, &released, &revoked, &anew];
    let answer = kept(session.renew(&listed).await?)?;
    let mut gone: Vec<_> = answer
        .gone
        .iter()
        .map(|gone| (gone.token, matches!(gone.why, GoneReason::Revoked { .. })))
        .collect();
    gone.sort_unstable();
    let mut expected = [
        (deleted.token(), false),
        (released.token(), false),
        (revoked.token(), true),
    ];
    expected.sort_unstable();
    assert_eq!(gone, expected);
    for (late, _) in &answer.late {
        assert!([stands.token(), anew.token()].contains(&late.token));
    }
    stands.stands().await?;
    anew.stands().await?;
    elsewhere.stands().await
}

/// KEEP-3: what a renewal does not list is ended, a grant like a place; what it lists, as a grant
/// or as an attempt, is kept.
pub(crate) async fn what_a_renewal_does_not_list_is_ended(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (session, other) = (node.session("holder").await?, node.session("other").await?);
    let wanted = other.acquire(&LockKey::new("wanted")?).await?;
    let also_wanted = other.acquire(&LockKey::new("also wanted")?).await?;
    let as_grant = session.acquire(&LockKey::new("as a grant")?).await?;
    let as_attempt = session.acquire(&LockKey::new("as an attempt")?).await?;
    let given_up = session.acquire(&LockKey::new("given up")?).await?;
    let waits = session.enqueue(wanted.key()).await?;
    let gives_up_waiting = session.enqueue(also_wanted.key()).await?;
    let next = node
        .session("next")
        .await?
        .enqueue(also_wanted.key())
        .await?;
    let attempts = [as_grant.attempt, as_attempt.attempt, waits.attempt];
    let answer = kept(session.keep_alive(&[&as_grant], &attempts).await?)?;
    assert_eq!(answer.gone, []);
    let freed = other.acquire(given_up.key()).await?;
    assert!(freed.token() > given_up.token());
    given_up.is_gone().await?;
    assert!(also_wanted.release().await?);
    next.take().await?;
    assert_eq!(gives_up_waiting.try_again().await?, InsertOutcome::Ended);
    as_grant.stands().await?;
    as_attempt.stands().await?;
    waits.still_waits().await?;
    let twice = kept(
        session
            .keep_alive(&[&as_grant, &as_attempt], &attempts)
            .await?,
    )?;
    assert_eq!(twice.gone, []);
    held_by(&session.try_acquire(freed.key()).await?, &freed);
    Ok(())
}

/// KEEP-3: an insert that is under way while a renewal is, in whichever order they began, is not
/// given up by it.
pub(crate) async fn a_renewal_spares_inserts_under_way(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    for round in 0..12 {
        let key = LockKey::new(format!("renewal first {round}"))?;
        let (renewal, holding) =
            tokio::join!(biased; session.keep_alive(&[], &[]), session.acquire(&key));
        kept(renewal?)?;
        let holding = holding?;
        holding.stands().await?;
        assert!(holding.release().await?);

        let key = LockKey::new(format!("insert first {round}"))?;
        let mut insert = Box::pin(session.acquire(&key));
        let at_once = poll_once(&mut insert).await;
        let holding = match at_once {
            // Answered before the renewal began: that may end it.
            Some(holding) => holding?,
            None => {
                let (renewal, holding) = tokio::join!(biased; session.keep_alive(&[], &[]), insert);
                kept(renewal?)?;
                let holding = holding?;
                holding.stands().await?;
                holding
            }
        };
        assert!(holding.release().await?);
    }
    scene.nothing_is_left_but(1).await
}
