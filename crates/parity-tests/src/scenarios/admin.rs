//! What operators see and do.

use std::time::Duration;

use lock_spi::{
    Effect, FencingToken, InsertOutcome, LockKey, PageRequest, Queue, RecoverRequest, RecoveryId,
    SessionInfo, Severity, StoreAdmin, Ttl,
};

use crate::scenario::{Stop, Verdict};
use crate::scene::{Node, PATIENCE, Scene};
use crate::session::granted;

/// How long a namespace is closed in these scenarios.
const HOLD_OFF: Duration = Duration::from_secs(2);

async fn all_sessions(admin: &dyn StoreAdmin, limit: u32) -> Result<Vec<SessionInfo>, Stop> {
    let mut page = PageRequest { after: None, limit };
    let mut sessions = Vec::new();
    loop {
        let answer = admin.sessions(page.clone()).await?;
        sessions.extend(answer.entries);
        match answer.next {
            Some(next) => page.after = Some(next),
            None => return Ok(sessions),
        }
    }
}

fn recovery(node: &Node, above: Option<FencingToken>) -> RecoverRequest {
    RecoverRequest {
        id: RecoveryId::random(&*node.runtime),
        above,
        hold_off: HOLD_OFF,
    }
}

/// Repeats a recovery until the namespace is open again; answers with its term.
async fn recovered(scene: &Scene, node: &Node, request: &RecoverRequest) -> Result<u64, Stop> {
    let mut term = None;
    scene
        .eventually("the namespace is open", HOLD_OFF + PATIENCE, async || {
            let recovery = node.admin()?.recover(request.clone()).await?;
            assert!(recovery.closed_for <= HOLD_OFF);
            assert_eq!(*term.get_or_insert(recovery.term), recovery.term);
            Ok(recovery.closed_for.is_zero())
        })
        .await?;
    Ok(term.unwrap_or_default())
}

/// OPEN-2, CLOSE-1: an operator sees the sessions that are open, of every process, with owner and
/// ttl.
pub(crate) async fn operators_see_the_open_sessions(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let admin = here.admin()?;
    let mut open = Vec::new();
    for (node, owner) in [(&here, "one"), (&there, "two"), (&here, "three")] {
        open.push(node.session(owner).await?);
    }
    let closed = there.session("closed").await?;
    closed.close().await?;
    for limit in [1, 2, 100] {
        let sessions = all_sessions(admin, limit).await?;
        assert_eq!(sessions.len(), open.len());
        for session in &open {
            let info = sessions.iter().find(|info| info.session == session.id());
            let Some(info) = info else {
                panic!("{:?} is not listed", session.owner());
            };
            assert_eq!(info.owner, *session.owner());
            assert_eq!(info.ttl, session.ttl());
            assert!(
                info.remaining
                    .is_none_or(|left| left <= session.ttl().as_duration())
            );
        }
    }
    Ok(())
}

/// INSERT-7: an operator sees who waits, first in line first.
pub(crate) async fn operators_see_who_waits_in_order(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let admin = node.admin()?;
    let key = LockKey::new("nightly")?;
    assert_eq!(admin.waiters(&key).await?, []);
    let holding = node.session("holder").await?.acquire(&key).await?;
    let mut line = Vec::new();
    for owner in ["one", "two", "three", "four"] {
        line.push(node.session(owner).await?.enqueue(&key).await?);
    }
    line.remove(1).abandon().await?;
    let waiters = admin.waiters(&key).await?;
    assert_eq!(waiters.len(), line.len());
    for ((ahead, waiter), info) in (0..).zip(&line).zip(&waiters) {
        assert_eq!(info.attempt, waiter.attempt);
        assert_eq!(info.session, waiter.session.id());
        assert_eq!(info.owner, *waiter.session.owner());
        assert_eq!(info.place.position, waiter.place.position);
        assert!(info.place.ahead.is_none_or(|told| told == ahead));
    }
    assert!(holding.release().await?);
    line.remove(0).take().await?;
    assert_eq!(admin.waiters(&key).await?.len(), line.len());
    Ok(())
}

/// READ-1: the format in a store in use is this build's; migrating again changes nothing, also side
/// by side.
pub(crate) async fn migrating_what_is_current_changes_nothing(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let holding = here
        .session("holder")
        .await?
        .acquire(&LockKey::new("nightly")?)
        .await?;
    let (a, b) = tokio::join!(biased; here.admin()?.migrate(), there.admin()?.migrate());
    for migration in [a?, b?, here.admin()?.migration().await?] {
        assert_eq!(migration.found, Some(migration.wanted));
    }
    holding.stands().await
}

/// ALL-4: of a store that is well an operator is told nothing critical, and looking changes
/// nothing.
pub(crate) async fn a_store_that_is_well_has_no_critical_findings(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let waiter = node.session("waiter").await?.enqueue(&key).await?;
    node.revoke(&LockKey::new("revoked")?).await?;
    let before = scene.operator().residue().await;
    for finding in node.admin()?.diagnose().await? {
        assert!(finding.severity < Severity::Critical, "{finding:?}");
    }
    assert_eq!(scene.operator().residue().await, before);
    holding.stands().await?;
    waiter.still_waits().await
}

/// RECOVER-1, RECOVER-2, ALL-5: a recovery ends everything, keeps the namespace closed for the
/// hold-off, and then grants above all that was.
pub(crate) async fn a_recovery_ends_everything_and_rises_above_it(scene: Scene) -> Verdict {
    let (here, operator) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let session = here.session("holder").await?;
    let holding = session.acquire(&key).await?;
    let waiter = here.session("waiter").await?.enqueue(&key).await?;
    let request = recovery(&operator, None);
    let begun = operator.admin()?.recover(request.clone()).await?;
    assert!(begun.term > holding.token().term());
    assert!(!begun.closed_for.is_zero() && begun.closed_for <= HOLD_OFF);
    for node in [&here, &operator] {
        let opening = node.open_request("early", Ttl::DEFAULT)?;
        match node.store.open_session(opening).await {
            Ok(lease) => panic!("opened while closed: {lease:?}"),
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                assert_eq!(error.effect(), Effect::None, "{error}");
            }
        }
    }
    for outcome in [
        session.insert(&key, session.attempt(), Queue::Join).await,
        waiter.try_again().await,
    ] {
        assert!(
            !matches!(
                outcome,
                Ok(InsertOutcome::Granted(_) | InsertOutcome::Queued(_))
            ),
            "while closed: {outcome:?}"
        );
    }
    assert_eq!(holding.extend().await?, None);
    assert!(!holding.release().await?);
    assert_eq!(session.renew(&[&holding]).await?, None);
    assert_eq!(recovered(&scene, &operator, &request).await?, begun.term);
    scene.nothing_is_left_but(0).await?;
    let next = here.session("next").await?.acquire(&key).await?;
    assert!(next.token() > holding.token());
    assert_eq!(next.token().term(), begun.term);
    holding.is_gone().await?;
    next.stands().await
}

/// RECOVER-1: later tokens are above the highest that anyone knows of, in whatever term it is.
pub(crate) async fn a_recovery_rises_above_what_resources_saw(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let before = node.session("before").await?.acquire(&key).await?;
    let seen = FencingToken::from_parts(before.token().term() + 1_000, 77)?;
    let request = recovery(&node, Some(seen));
    recovered(&scene, &node, &request).await?;
    let session = node.session("after").await?;
    for text in ["nightly", "never held before"] {
        let after = session.acquire(&LockKey::new(text)?).await?;
        assert!(after.token() > seen);
        after.stands().await?;
    }
    Ok(())
}

/// RECOVER-3: repeated with the same id a recovery goes on, and ends nothing that was granted after
/// it; another id is another recovery.
pub(crate) async fn a_repeated_recovery_ends_nothing_new(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let request = recovery(&here, None);
    let term = recovered(&scene, &here, &request).await?;
    let session = there.session("holder").await?;
    let holding = session.acquire(&key).await?;
    for node in [&here, &there] {
        let again = node.admin()?.recover(request.clone()).await?;
        assert_eq!(again.term, term);
        assert!(again.closed_for.is_zero());
    }
    holding.stands().await?;
    let another = recovery(&there, None);
    assert!(recovered(&scene, &there, &another).await? > term);
    holding.is_gone().await?;
    let session = here.session("next").await?;
    let attempt = session.attempt();
    let grant = granted(session.insert(&key, attempt, Queue::Never).await?);
    assert!(grant.token > holding.token());
    Ok(())
}

/// RECOVER-1, REVOKE-5: floors and revocations of before a recovery still bind and are still told.
pub(crate) async fn floors_and_records_outlive_a_recovery(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    node.session("holder").await?.acquire(&key).await?;
    let outcome = node.revoke(&key).await?;
    recovered(&scene, &node, &recovery(&node, None)).await?;
    assert_eq!(node.store.read(&key).await?.floor, outcome.new_token_floor);
    let records = node.store.revocations(&key, PageRequest::default()).await?;
    assert_eq!(records.entries.len(), 1);
    let next = node.session("next").await?.acquire(&key).await?;
    assert!(Some(next.token()) > outcome.new_token_floor);
    Ok(())
}
