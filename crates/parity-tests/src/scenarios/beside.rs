//! Calls side by side end as if they had come one after the other.

use lock_spi::{InsertOutcome, LockKey, PageRequest, Queue, RevokeTarget, Ttl};

use crate::scenario::Verdict;
use crate::scene::{Scene, joined};
use crate::session::{Session, granted};

/// How often each meeting is staged.
const ROUNDS: usize = 8;

/// INSERT-3, INSERT-1: an attempt that is tried several times at once has one grant.
pub(crate) async fn tries_of_one_attempt_have_one_grant(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    for round in 0..ROUNDS {
        let key = LockKey::new(format!("round {round}"))?;
        let attempt = session.attempt();
        let tries: Vec<_> = [Queue::Never, Queue::Join, Queue::Never, Queue::Join]
            .into_iter()
            .map(|queue| {
                let (session, key) = (session.clone(), key.clone());
                scene
                    .runtime()
                    .run_to_end(async move { session.insert(&key, attempt, queue).await })
            })
            .collect();
        let mut grants = Vec::new();
        for outcome in tries {
            grants.push(granted(joined(outcome).await?));
        }
        assert!(grants.iter().all(|grant| grant.token == grants[0].token));
        let holding = session.holding(attempt, grants.remove(0));
        assert!(holding.release().await?);
        scene.nothing_is_left_but(1).await?;
    }
    Ok(())
}

/// INSERT-3, INSERT-7: an attempt that queues several times at once has one place.
pub(crate) async fn tries_of_one_attempt_have_one_place(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (holder, session) = (node.session("holder").await?, node.session("waiter").await?);
    for round in 0..ROUNDS {
        let holding = holder
            .acquire(&LockKey::new(format!("round {round}"))?)
            .await?;
        let attempt = session.attempt();
        let tries: Vec<_> = (0..4)
            .map(|_| {
                let (session, key) = (session.clone(), holding.key().clone());
                scene
                    .runtime()
                    .run_to_end(async move { session.insert(&key, attempt, Queue::Join).await })
            })
            .collect();
        let mut positions = Vec::new();
        for outcome in tries {
            positions.push(crate::session::queued(joined(outcome).await?).position);
        }
        assert!(positions.iter().all(|position| *position == positions[0]));
        scene.nothing_is_left_but(4).await?;
        assert!(holding.release().await?);
        let grant = granted(session.insert(holding.key(), attempt, Queue::Join).await?);
        assert!(session.holding(attempt, grant).release().await?);
    }
    scene.nothing_is_left_but(2).await
}

/// ABANDON-1, INSERT-5, B37: whichever of an insert and its abandon comes first, afterwards the
/// attempt has nothing and never will.
pub(crate) async fn an_abandon_beside_its_insert_wins(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    for round in 0..ROUNDS {
        let key = LockKey::new(format!("round {round}"))?;
        let attempt = session.attempt();
        let queue = [Queue::Never, Queue::Join][round % 2];
        let insert = session.insert(&key, attempt, queue);
        let abandon = node.store.abandon(&key, session.id(), attempt);
        let (inserted, abandoned) = if round % 4 < 2 {
            tokio::join!(biased; insert, abandon)
        } else {
            let (abandoned, inserted) = tokio::join!(biased; abandon, insert);
            (inserted, abandoned)
        };
        abandoned?;
        let told = inserted?;
        let possible = matches!(told, InsertOutcome::Granted(_) | InsertOutcome::Ended);
        assert!(possible, "{told:?}");
        scene.nothing_is_left_but(1).await?;
        let again = session.insert(&key, attempt, queue).await?;
        assert_eq!(again, InsertOutcome::Ended);
    }
    Ok(())
}

/// CLOSE-1, INSERT-8, ALL-5: whichever of an insert and the close of its session comes first,
/// afterwards nothing is left.
pub(crate) async fn a_close_beside_an_insert_leaves_nothing(scene: Scene) -> Verdict {
    let node = scene.node().await;
    for round in 0..ROUNDS {
        let key = LockKey::new(format!("round {round}"))?;
        let session = node.session("closing").await?;
        let insert = session.insert(&key, session.attempt(), Queue::Join);
        let (inserted, closed) = if round % 2 == 0 {
            tokio::join!(biased; insert, session.close())
        } else {
            let (closed, inserted) = tokio::join!(biased; session.close(), insert);
            (inserted, closed)
        };
        closed?;
        if let Ok(InsertOutcome::Granted(grant)) = inserted {
            assert_eq!(node.store.extend(&key, grant.token).await?, None);
        }
        scene.nothing_is_left_but(0).await?;
    }
    Ok(())
}

/// OPEN-1: openings of one id at once are one session.
pub(crate) async fn openings_of_one_id_are_one_session(scene: Scene) -> Verdict {
    let node = scene.node().await;
    for _ in 0..ROUNDS {
        let request = node.open_request("holder", Ttl::DEFAULT)?;
        let openings: Vec<_> = (0..3)
            .map(|_| {
                let (store, request) = (std::sync::Arc::clone(&node.store), request.clone());
                scene
                    .runtime()
                    .run_to_end(async move { store.open_session(request).await })
            })
            .collect();
        let mut lease = None;
        for opening in openings {
            let opened = joined(opening).await?;
            assert_eq!(opened.session, request.session);
            lease = Some(opened);
        }
        scene.nothing_is_left_but(1).await?;
        if let Some(lease) = lease {
            let session = Session::new(node.clone(), request.owner, lease);
            session.acquire(&LockKey::new("nightly")?).await?;
            session.close().await?;
        }
        scene.nothing_is_left_but(0).await?;
    }
    Ok(())
}

/// REVOKE-1, REVOKE-2, RECORDS-1: of revokes at once one ends the grant; one wish from two
/// processes is one record, two wishes are two.
pub(crate) async fn of_revokes_at_once_one_ends_the_grant(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let session = here.session("holder").await?;
    for round in 0..ROUNDS {
        let key = LockKey::new(format!("round {round}"))?;
        let holding = session.acquire(&key).await?;
        let one = here.revoke_request(&key, RevokeTarget::Whoever)?;
        let two = there.revoke_request(&key, RevokeTarget::Whoever)?;
        let (first, again, other) = tokio::join!(biased;
            here.store.revoke(one.clone()),
            there.store.revoke(one.clone()),
            there.store.revoke(two),
        );
        let (first, again, other) = (first?, again?, other?);
        assert_eq!(first, again, "one wish");
        assert!(first.revoked ^ other.revoked, "one grant");
        assert_ne!(first.new_token_floor, other.new_token_floor);
        holding.is_gone().await?;
        let records = here.store.revocations(&key, PageRequest::default()).await?;
        assert_eq!(records.entries.len(), 2);
        let next = session.acquire(&key).await?;
        assert!(Some(next.token()) > first.new_token_floor.max(other.new_token_floor));
    }
    Ok(())
}

/// KEEP-2, DELETE-1, B61: a renewal beside a release is no error, and afterwards the key is free.
pub(crate) async fn a_renewal_beside_a_release_frees_the_key(scene: Scene) -> Verdict {
    let session = scene.node().await.session("holder").await?;
    let kept = session.acquire(&LockKey::new("kept")?).await?;
    for round in 0..ROUNDS {
        let holding = session
            .acquire(&LockKey::new(format!("round {round}"))?)
            .await?;
        let renewal = session.renew(&[&kept, &holding]);
        let (renewed, released) = if round % 2 == 0 {
            tokio::join!(biased; renewal, holding.release())
        } else {
            let (released, renewed) = tokio::join!(biased; holding.release(), renewal);
            (renewed, released)
        };
        assert!(released?);
        let Some(renewed) = renewed? else {
            panic!("the session stands");
        };
        assert!(
            renewed
                .gone
                .iter()
                .all(|gone| gone.token == holding.token())
        );
        holding.is_gone().await?;
    }
    kept.stands().await?;
    scene.nothing_is_left_but(2).await
}
