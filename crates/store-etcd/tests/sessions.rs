//! Sessions: what a renewal is believed by, and what ends a session.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{TTL, key, seconds, simulate};
use etcd_kv::{LeaseId, MetadataStore};
use etcd_mock::{MockStore, Options};
use lock_spi::{
    Effect, ErrorKind, InsertOutcome, LockStore, OpenSessionRequest, Owner, Queue, Result,
    SessionId, Ttl,
};

/// A deposed leader answers as ever; only the term of raft tells.
#[test]
fn a_keepalive_of_another_raft_term_extends_nothing() {
    simulate(async |cluster| {
        cluster.server.set_raft_term(7);
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        cluster.sleep(seconds(10)).await;
        node.kv.depose(u32::MAX);
        let error = node.store.extend(&key("k"), grant.token).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unavailable, Effect::Unknown)
        );
        assert!(node.keep(session, &[&grant], &[attempt]).await.is_err());
        cluster.sleep(seconds(5)).await;
        // The old deadline stood: the session is over, and ended before that is said.
        assert_eq!(node.keep(session, &[&grant], &[attempt]).await?, None);
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_renewal_that_one_leader_does_not_confirm_is_sent_again() {
    simulate(async |cluster| {
        cluster.server.set_raft_term(7);
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        cluster.sleep(seconds(10)).await;
        node.kv.depose(1);
        let kept = node.keep(session, &[&grant], &[attempt]).await?.unwrap();
        assert_eq!(kept.remaining, TTL);
        assert_eq!(kept.gone, []);
        Ok(())
    });
}

/// A ttl of 0 proves nothing while the session's key stands.
#[test]
fn a_member_that_knows_no_lease_loses_nobody_a_lock() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        node.kv.forget_leases(1);
        assert!(node.store.extend(&key("k"), grant.token).await?.is_some());
        node.kv.forget_leases(u32::MAX);
        let error = node.store.extend(&key("k"), grant.token).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(node.holder("k").await, Some(grant.token));
        Ok(())
    });
}

/// B20: a lease that was revoked behind the holder's back is lost at once.
#[test]
fn a_session_whose_key_is_gone_is_gone() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        let lease = LeaseId(session.as_i64());
        cluster.server.lease_revoke(lease).await.unwrap();
        assert_eq!(node.keep(session, &[&grant], &[attempt]).await?, None);
        let error = node
            .insert(session, "k", node.attempt(), Queue::Never)
            .await;
        let error = error.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::SessionGone, Effect::None)
        );
        Ok(())
    });
}

#[test]
fn a_session_past_its_own_deadline_is_ended_and_not_kept_alive() {
    simulate(async |cluster| {
        let (node, other) = (cluster.node().await, cluster.node().await);
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        // Somebody else keeps the lease alive; the store object that opened it knows nothing of it.
        cluster.sleep(seconds(10)).await;
        assert!(other.store.extend(&key("k"), grant.token).await?.is_some());
        cluster.sleep(seconds(5)).await;
        assert_eq!(other.holder("k").await, Some(grant.token));
        assert_eq!(node.keep(session, &[&grant], &[attempt]).await?, None);
        assert_eq!(other.holder("k").await, None);
        assert_eq!(cluster.names("session/"), Vec::<String>::new());
        Ok(())
    });
}

/// While the server cannot be reached, a session that is over by its own deadline is not "gone".
#[test]
fn gone_is_said_only_once_it_is_made_so() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, attempt) = node.take(session, "k").await;
        node.kv.faults().partition();
        cluster.sleep(TTL).await;
        let error = node.keep(session, &[&grant], &[attempt]).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unavailable, Effect::Unknown)
        );
        node.kv.faults().heal();
        assert_eq!(node.keep(session, &[&grant], &[attempt]).await?, None);
        Ok(())
    });
}

#[test]
fn nothing_is_granted_with_less_than_the_margin_left() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        cluster.sleep(seconds(14)).await;
        node.kv.forget_leases(3);
        let attempt = node.attempt();
        let error = node
            .insert(session, "k", attempt, Queue::Never)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unavailable, Effect::None)
        );
        assert_eq!(cluster.names("lock/"), Vec::<String>::new());
        let (grant, _) = node.take(session, "k").await;
        assert_eq!(grant.remaining, Some(TTL), "renewed before it was granted");
        Ok(())
    });
}

/// `remaining` is the session's confirmed deadline, never the ttl.
#[test]
fn a_grant_lives_no_longer_than_its_session_is_confirmed_to() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        cluster.sleep(seconds(9)).await;
        let (grant, _) = node.take(session, "k").await;
        assert_eq!(grant.remaining, Some(seconds(6)));
        Ok(())
    });
}

#[test]
fn a_closed_session_takes_everything_along_and_is_never_opened_again() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        node.take(session, "a").await;
        node.take(session, "b").await;
        node.queue(session, "a").await;
        node.store.close_session(session).await?;
        node.store.close_session(session).await?;
        for family in ["lock/", "wait/", "session/", "epoch/"] {
            assert_eq!(cluster.names(family), Vec::<String>::new(), "{family}");
        }
        let error = node.open(session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SessionGone);
        let error = node
            .insert(session, "a", node.attempt(), Queue::Never)
            .await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::SessionGone);
        Ok(())
    });
}

/// B121: whole seconds, and the server's own minimum; what was granted is reported.
#[test]
fn ttls_are_lengthened_and_reported_never_shortened() {
    simulate(async |cluster| {
        let runtime = Arc::clone(&cluster.runtime);
        let options = Options::embedded().with_min_lease_ttl(5);
        let slow = MockStore::in_step_with_options(runtime, options);
        for (server, asked, granted) in [
            (cluster.server.clone(), 1500, 2),
            (cluster.server.clone(), 2000, 2),
            (slow, 1500, 5),
        ] {
            let node = cluster.node_on(server).await;
            let request = OpenSessionRequest {
                session: SessionId::random(&*cluster.runtime),
                owner: Owner::default(),
                ttl: Ttl::new(Duration::from_millis(asked)).unwrap(),
            };
            for _ in 0..2 {
                let lease = node.store.open_session(request.clone()).await?;
                assert_eq!(lease.ttl, Ttl::from_secs(granted).unwrap());
                assert_eq!(lease.remaining, seconds(granted));
            }
        }
        Ok(())
    });
}

#[test]
fn keeping_writes_nothing() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (a, one) = node.take(session, "a").await;
        let (b, two) = node.take(session, "b").await;
        let revision = cluster.server.revision();
        let kept = node.keep(session, &[&a, &b], &[one, two]).await?.unwrap();
        assert_eq!(kept.gone, []);
        assert_eq!(cluster.server.revision(), revision);
        Ok(())
    });
}

/// One keepalive and one look at the lease, however many grants there are.
#[test]
fn keeping_many_grants_costs_as_many_calls_as_keeping_one() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let mut held = Vec::new();
        for number in 0..40 {
            held.push(node.take(session, &format!("k{number}")).await);
        }
        let grants: Vec<_> = held.iter().map(|(grant, _)| grant).collect();
        let attempts: Vec<_> = held.iter().map(|(_, attempt)| *attempt).collect();
        let calls = || node.kv.faults().calls().values().sum::<u64>();
        let before = calls();
        let kept = node.keep(session, &grants, &attempts).await?.unwrap();
        assert_eq!(kept.gone, []);
        assert_eq!(calls() - before, 3, "keepalive, verification, time to live");
        Ok::<_, lock_spi::Error>(())
    });
}

#[test]
fn another_attempt_of_one_session_is_held_off() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let (grant, _) = node.take(session, "k").await;
        let outcome: Result<_> = node
            .insert(session, "k", node.attempt(), Queue::Never)
            .await;
        let InsertOutcome::Held(Some(holder)) = outcome? else {
            panic!("not held");
        };
        assert_eq!((holder.token, holder.session), (grant.token, session));
        Ok(())
    });
}
