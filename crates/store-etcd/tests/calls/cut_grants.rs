//! Grants on which a call is cut.

use lock_spi::{
    Effect, KeyPrefix, LockOutcome, LockStore, PageRequest, Queue, Result, RevokeTarget,
    WaitRequest,
};

use crate::common::{key, queued};
use crate::live::until::until;
use crate::stage::{arrives, assert_honest, for_each_cut};
use crate::wire;

fn lock(text: &str) -> Vec<u8> {
    format!("lock/{text}").into()
}

/// B56: an extend that is cut loses nothing, whichever of its requests it was.
#[tokio::test]
async fn a_cut_extend_loses_nothing() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        let (grant, _) = stage.own(session, "k").await;
        let extend = async || stage.node.store.extend(&grant.key, grant.token).await;
        for request in [wire::lease_by_id(session), lock("k")] {
            match stage.cut((cut, request), extend()).await {
                Ok(extended) => assert_eq!(extended.map(|grant| grant.token), Some(grant.token)),
                Err(error) => assert_eq!(error.effect(), Effect::Unknown, "{error:?}"),
            }
            let extended = stage.insist(extend).await.expect("it stands");
            assert_eq!(extended.token, grant.token);
            stage.stands(&grant).await;
        }
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// B01, B59: a release that is cut ended its grant or did not, as the repeat says; it ends nobody
/// else's.
#[tokio::test]
async fn a_cut_release_ends_its_grant_once() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        let (grant, _) = stage.own(session, "k").await;
        let release = async || (stage.node.store.delete_if_owner(&grant.key, grant.token)).await;
        let told = stage.cut((cut, lock("k")), release()).await;
        assert_honest(&told, arrives(cut));
        if arrives(cut) {
            until("it has arrived", async || {
                stage.names("lock/").await.is_empty().then_some(())
            })
            .await;
        } else {
            stage.stands(&grant).await;
        }
        let again = stage.insist(release).await;
        match told {
            Ok(ended) => assert!(ended && !again),
            Err(_) => assert_eq!(again, !arrives(cut)),
        }
        stage.next_is_above("k", grant.token).await;
        assert!(!stage.insist(release).await);
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// B62: a revoke that is cut happens once, and its repeat tells what it did.
#[tokio::test]
async fn a_cut_revoke_happens_once() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        // The look before it, and the transaction that does it.
        for (text, only_looks) in [("look", true), ("act", false)] {
            let (grant, _) = stage.own(session, text).await;
            let request = stage
                .node
                .revoke_request(text, RevokeTarget::Grant(grant.token));
            let bytes = match only_looks {
                true => format!("revocation/{text}/").into(),
                false => format!(r#""reason":"{}""#, request.reason.as_str()).into_bytes(),
            };
            let revoke = async || stage.node.store.revoke(request.clone()).await;
            let told = stage.cut((cut, bytes), revoke()).await;
            assert_honest(&told, !only_looks && arrives(cut));
            let outcome = stage.insist(revoke).await;
            if let Ok(told) = told {
                assert_eq!(told, outcome);
            }
            let LockOutcome {
                revoked,
                previous_token,
                new_token_floor,
                ..
            } = outcome;
            assert_eq!((revoked, previous_token), (true, Some(grant.token)));
            assert!(new_token_floor > Some(grant.token));
            assert_eq!(
                stage
                    .stored
                    .below(&format!("revocation/{text}/"))
                    .await
                    .len(),
                1
            );
            assert_eq!(stage.stored.at(&format!("lock/{text}")).await, None);
            let extended = async || stage.node.store.extend(&grant.key, grant.token).await;
            assert_eq!(stage.insist(extended).await, None);
            let next = stage.others(text).await;
            assert!(Some(next.token) > new_token_floor);
        }
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// What only reads tells the truth or an error without effect.
#[tokio::test]
async fn a_cut_read_has_no_effect() {
    fn told<T>(told: Result<T>, check: impl FnOnce(T)) {
        match told {
            Ok(outcome) => check(outcome),
            Err(error) => assert_eq!(error.effect(), Effect::None, "{error:?}"),
        }
    }
    for_each_cut(async |stage, cut| {
        let grant = stage.others("k").await;
        let revoked = stage.other.revoke_request("k", RevokeTarget::Whoever);
        stage.other.store.revoke(revoked).await.unwrap();
        let next = stage.others("k").await;
        assert!(next.token > grant.token);
        let before = stage.stored.below("").await;

        let (store, named) = (&stage.node.store, key("k"));
        let (all, page) = (KeyPrefix::default(), PageRequest::default());
        let admin = store.admin().unwrap();
        let read = stage.cut((cut, lock("k")), store.read(&named)).await;
        told(read, |info| {
            assert_eq!(info.holder.unwrap().token, next.token)
        });
        let list = stage
            .cut((cut, lock("")), store.list(&all, page.clone()))
            .await;
        told(list, |page| assert_eq!(page.entries.len(), 1));
        let records = store.revocations(&named, page.clone());
        let records = stage.cut((cut, b"revocation/k/".into()), records).await;
        told(records, |page| assert_eq!(page.entries.len(), 1));
        let waiters = admin.waiters(&named);
        let waiters = stage.cut((cut, b"wait/k/".into()), waiters).await;
        told(waiters, |waiters| assert!(waiters.is_empty()));
        let sessions = stage
            .cut((cut, b"session/".into()), admin.sessions(page))
            .await;
        told(sessions, |page| assert_eq!(page.entries.len(), 2));

        assert_eq!(stage.stored.below("").await, before);
        let read = stage.insist(async || store.read(&named).await).await;
        assert_eq!(read.holder.unwrap().token, next.token);
    })
    .await;
}

/// B76: a wait that is cut, wherever, ends by a hint or an error without effect; it writes nothing
/// and keeps the place, and the next one is woken.
#[tokio::test]
async fn a_cut_wait_keeps_its_place() {
    for_each_cut(async |stage, cut| {
        let (session, attempt) = (stage.session().await, stage.node.attempt());
        let holder = stage.others("k").await;
        let join = async || stage.node.insert(session, "k", attempt, Queue::Join).await;
        let place = queued(stage.insist(join).await);
        let request = WaitRequest {
            key: key("k"),
            session,
            attempt,
            place: Some(place.clone()),
        };
        let wait = async || stage.node.store.await_release(request.clone()).await;
        let before = stage.stored.below("").await;
        let watched = |name| wire::watch(&stage.stored.key(name));
        for bytes in [
            format!("wait/k/{attempt}").into_bytes(),
            watched(&format!("session/{session}")),
            watched("lock/k"),
        ] {
            if let Err(error) = stage.cut((cut, bytes), wait()).await {
                assert_eq!(error.effect(), Effect::None, "{error:?}");
            }
        }
        assert_eq!(stage.stored.below("").await, before);
        assert_eq!(queued(stage.insist(join).await).position, place.position);
        let woken = async || {
            tokio::join!(stage.insist(wait), stage.others_ends(&holder));
        };
        woken().await;
        let grant = crate::common::granted(stage.insist(join).await);
        stage.stands(&grant).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}
