//! Sessions on which a call is cut.

use etcd_kv::{LeaseId, MetadataStore};
use lock_spi::{Effect, ErrorKind, GoneReason, KeptAlive, LockStore, Queue, RevokeTarget};

use crate::stage::{TTL, arrives, assert_honest, for_each_cut};
use crate::wire;

/// An opening that is cut opens one session, and what is told to be left of it is left of it.
#[tokio::test]
async fn a_cut_opening_opens_one_session() {
    for_each_cut(async |stage, cut| {
        for at_the_lease in [true, false] {
            let request = stage.opening();
            let session = request.session;
            let bytes = match at_the_lease {
                true => wire::lease_grant(session),
                false => wire::opening(),
            };
            let open = async || stage.node.store.open_session(request.clone()).await;
            let told = stage.cut((cut, bytes), open()).await;
            assert_honest(&told, !at_the_lease || arrives(cut));
            let opened = stage.insist(open).await;
            assert_eq!((opened.session, opened.ttl.as_duration()), (session, TTL));
            let asked = stage.other.kv.lease_time_to_live(LeaseId(session.as_i64()));
            let whole_seconds = u64::try_from(asked.await.unwrap().ttl).unwrap();
            assert!(opened.remaining.as_secs() <= whole_seconds + 1);
            assert_eq!(stage.names("session/").await, [session.to_string()]);
            let (grant, _) = stage.own(session, "k").await;
            stage.stands(&grant).await;
            stage.nothing_is_left_of(session).await;
        }
    })
    .await;
}

/// B56: a renewal that is cut, whichever of its requests it was, loses nothing, and says nothing is
/// gone.
#[tokio::test]
async fn a_cut_renewal_loses_nothing() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        let (grant, attempt) = stage.own(session, "k").await;
        let keep = async || stage.node.keep(session, &[&grant], &[attempt]).await;
        for request in [
            wire::lease_by_id(session),
            format!("session/{session}").into(),
            wire::lease_look(session),
        ] {
            match stage.cut((cut, request), keep()).await {
                Ok(kept) => assert!(kept.expect("it stands").gone.is_empty()),
                Err(error) => assert_eq!(error.effect(), Effect::Unknown, "{error:?}"),
            }
            let kept = stage.insist(keep).await.expect("it stands");
            assert!(kept.gone.is_empty() && kept.late.is_empty());
            stage.stands(&grant).await;
        }
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// A renewal that is cut over a grant that was revoked tells of it, or an error; the next one tells
/// of it, and of nothing else.
#[tokio::test]
async fn a_cut_renewal_tells_exactly_what_is_gone() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        let (kept, kept_by) = stage.own(session, "kept").await;
        let (gone, gone_by) = stage.own(session, "gone").await;
        let request = stage
            .other
            .revoke_request("gone", RevokeTarget::Grant(gone.token));
        let revoke = async || stage.other.store.revoke(request.clone()).await;
        assert!(stage.insist(revoke).await.revoked);
        let attempts = [kept_by, gone_by];
        let keep = async || stage.node.keep(session, &[&kept, &gone], &attempts).await;
        let exactly = |told: Option<KeptAlive>| {
            let told = told.expect("it stands").gone;
            let [named] = &*told else {
                panic!("{told:?}");
            };
            assert_eq!(named.token, gone.token);
            assert!(matches!(named.why, GoneReason::Revoked { .. }));
        };
        match stage.cut((cut, b"revocation/gone/".into()), keep()).await {
            Ok(kept) => exactly(kept),
            Err(error) => assert_eq!(error.effect(), Effect::Unknown, "{error:?}"),
        }
        exactly(stage.insist(keep).await);
        stage.stands(&kept).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// What one renewal was kept from ending, the next one ends.
#[tokio::test]
async fn a_cut_reconciliation_is_made_up_for() {
    for_each_cut(async |stage, cut| {
        let session = stage.session().await;
        let (kept_grant, kept) = stage.own(session, "kept").await;
        stage.own(session, "surplus").await;
        let keep = async || stage.node.keep(session, &[&kept_grant], &[kept]).await;
        let told = stage.cut((cut, b"lock/surplus".into()), keep()).await;
        assert_honest(&told, true);
        assert!(stage.insist(keep).await.unwrap().gone.is_empty());
        assert_eq!(stage.names("lock/").await, ["kept"]);
        stage.stands(&kept_grant).await;
        stage.nothing_is_left_of(session).await;
    })
    .await;
}

/// A close that is cut is repeated; then the session has nothing, and never will.
#[tokio::test]
async fn a_cut_close_is_repeated() {
    for_each_cut(async |stage, cut| {
        for (text, at_the_lease) in [("lease", true), ("keys", false)] {
            let session = stage.session().await;
            let (grant, _) = stage.own(session, text).await;
            let bytes = match at_the_lease {
                true => wire::lease_by_id(session),
                false => format!("epoch/{session}").into(),
            };
            let told = stage
                .cut((cut, bytes), stage.node.store.close_session(session))
                .await;
            assert_honest(&told, true);
            // Told or not, nothing more is granted under it.
            let attempt = stage.node.attempt();
            let late = stage
                .node
                .insert(session, "k2", attempt, Queue::Never)
                .await;
            let late = late.expect_err("it is closing");
            assert!(matches!(
                late.kind(),
                ErrorKind::SessionGone | ErrorKind::Unavailable
            ));
            stage.nothing_is_left_of(session).await;
            let late = stage
                .node
                .insert(session, "k2", attempt, Queue::Never)
                .await;
            assert_eq!(late.unwrap_err().kind(), ErrorKind::SessionGone);
            let again = lock_spi::OpenSessionRequest {
                session,
                ..stage.opening()
            };
            let again = stage.node.store.open_session(again).await;
            assert_eq!(again.unwrap_err().kind(), ErrorKind::SessionGone);
            stage.next_is_above(text, grant.token).await;
        }
    })
    .await;
}
