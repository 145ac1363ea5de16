//! Handing a lock from one client to another.

use fencelock::spi::{Effect, ErrorKind as StoreErrorKind, SessionId};
use fencelock::{Client, ErrorKind, Grant, Guard, LostReason, Release};

use crate::common::{Act, Embedded, Op, Scene, acquired, is_free, seconds, ttl};

async fn transferable(client: &Client) -> Guard {
    client.acquire("k").transferable().await.unwrap()
}

#[test]
fn a_lock_goes_from_one_client_to_another_and_stays_held() {
    let embedded = Embedded::new();
    let (here, there) = (embedded.client("here"), embedded.client("there"));
    let third = embedded.client("third");
    let guard = embedded.run(transferable(&here));
    let (token, held) = (guard.token(), guard.held());
    embedded.pass(seconds(30));
    let line = guard.into_grant().unwrap().to_string();
    assert_eq!(held.check().unwrap_err().reason, LostReason::HandedOver);

    embedded.pass(seconds(3));
    assert!(!embedded.run(is_free(&third, "k")));
    let grant: Grant = line.parse().unwrap();
    let guard = embedded.run(there.adopt(grant)).unwrap();
    assert_eq!(guard.check().unwrap(), token);
    // Neither the end of the one client nor many renewals of the other change anything.
    embedded.run(here.shutdown());
    embedded.pass(seconds(100));
    assert_eq!(guard.check().unwrap(), token);
    assert!(!embedded.run(is_free(&third, "k")));

    assert_eq!(embedded.run(guard.release()).unwrap(), Release::Released);
    assert!(embedded.run(is_free(&third, "k")));
    embedded.run(there.shutdown());
    embedded.run(third.shutdown());
    assert_eq!(embedded.residue(), [""; 0]);
}

/// It can be handed on, and back.
#[test]
fn a_lock_can_be_handed_on() {
    let embedded = Embedded::new();
    let clients = ["one", "two", "three"].map(|name| embedded.client(name));
    let mut guard = embedded.run(transferable(&clients[0]));
    let token = guard.token();
    for next in [1, 2, 0, 1] {
        let grant = guard.into_grant().unwrap();
        guard = embedded.run(clients[next].adopt(grant)).unwrap();
        embedded.pass(seconds(20));
        assert_eq!(guard.check().unwrap(), token);
    }
}

#[test]
fn a_grant_that_nobody_takes_over_ends_with_its_ttl() {
    let embedded = Embedded::new();
    let (here, there) = (embedded.client("here"), embedded.client("there"));
    let grant = embedded.run(transferable(&here)).into_grant().unwrap();
    assert!(!embedded.run(is_free(&there, "k")));
    embedded.pass(seconds(16));
    let next = embedded.run(acquired(&there, "k"));
    assert!(next.token() > grant.token());
    let lost = embedded.run(there.adopt(grant)).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost);
    assert_eq!(lost.lost(), Some(&LostReason::SessionClosed));
    next.check().unwrap();
}

/// A grant that was revoked on its way, and one of another namespace, are lost.
#[test]
fn a_grant_that_has_ended_on_its_way_is_lost() {
    let embedded = Embedded::new();
    let (here, there) = (embedded.client("here"), embedded.client("there"));
    let grant = embedded.run(transferable(&here)).into_grant().unwrap();
    let target = fencelock::spi::RevokeTarget::Grant(grant.token());
    let revoke = there.admin();
    let revoke = revoke.revoke("k", target).reason("stuck").send();
    assert!(embedded.run(revoke).unwrap().revoked);
    let lost = embedded.run(there.adopt(grant)).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost);
    assert!(embedded.run(is_free(&here, "k")));

    let session = SessionId::random(&*embedded.runtime).as_i64();
    let foreign = format!("fencelock:1:{session}:7:15000:k").parse().unwrap();
    let lost = embedded.run(there.adopt(foreign)).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost);
}

#[test]
fn only_what_was_acquired_for_it_is_handed_over() {
    let embedded = Embedded::new();
    let client = embedded.client("here");
    let guard = embedded.run(acquired(&client, "k"));
    let refused = guard.into_grant().unwrap_err();
    assert_eq!(refused.error().kind(), ErrorKind::InvalidRequest);
    let guard = refused.into_guard();
    guard.check().unwrap();
    embedded.run(guard.release()).unwrap();

    let guard = embedded.run(transferable(&client));
    embedded.run(client.shutdown());
    let refused = guard.into_grant().unwrap_err();
    assert_eq!(refused.error().kind(), ErrorKind::Lost);
}

/// A lock to be handed over shares its session with no other, and what is on its way costs the other
/// locks of its client nothing.
#[test]
fn other_locks_of_the_client_stay() {
    let scene = Scene::new();
    let other = scene.guard("other");
    let guard = scene.run(transferable(&scene.client));
    let another = scene.guard("another");
    assert_eq!(scene.store.count(Op::Open), 2);
    drop(guard.into_grant().unwrap());
    scene.pass(seconds(100));
    assert!(other.is_held() && another.is_held());
    assert_eq!(scene.store.holder("k"), None);
    assert_eq!(scene.store.count(Op::Close), 0, "it is left to expire");
}

/// While the store does not answer it is tried again, for as long as the grant may live; then the
/// error says so, and a copy of the grant is still good.
#[test]
fn an_adoption_is_tried_again() {
    let scene = Scene::new();
    let there = scene.another("there");
    let grant = scene.run(transferable(&scene.client)).into_grant().unwrap();
    let failing = Act::Refuse(StoreErrorKind::Unavailable, Effect::Unknown);
    scene
        .store
        .next(Op::Adopt, [failing.clone(), Act::LoseReply]);
    scene
        .store
        .next(Op::Extend, [failing.clone(), Act::LoseReply]);
    let guard = scene.run(there.adopt(grant)).unwrap();
    guard.check().unwrap();

    let grant = guard.into_grant().unwrap();
    scene.store.always(Op::Adopt, failing);
    let began = scene.runtime.now();
    let failed = scene.run(there.adopt(grant.clone())).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable);
    let took = scene.runtime.now().saturating_since(began);
    assert!(took >= seconds(15) && took < seconds(25), "{took:?}");
    assert_eq!(scene.store.count(Op::Close), 0);
}

/// However long the store takes to confirm the grant, renewals account for it from the first: a
/// store ends what nobody accounts for.
#[test]
fn a_renewal_amid_an_adoption_accounts_for_the_grant() {
    let scene = Scene::new();
    let there = scene.another("there");
    let guard = scene.run(transferable(&scene.client));
    let token = guard.token();
    let grant = guard.into_grant().unwrap();
    let before = scene.store.renewals().len();
    scene.store.next(Op::Extend, [const { Act::TIMEOUT }; 6]);
    let guard = scene.run(there.adopt(grant)).unwrap();
    let renewals = scene.store.renewals().split_off(before);
    assert!(!renewals.is_empty(), "it took longer than a period");
    for renewal in renewals {
        let tokens: Vec<_> = renewal.grants.iter().map(|grant| grant.token).collect();
        assert_eq!(tokens, [token]);
    }
    scene.run(guard.release()).unwrap();
    scene.pass(seconds(20));
    let last = scene.store.renewals().pop().unwrap();
    assert_eq!(scene.store.holder("k"), None);
    assert!(last.grants.iter().all(|grant| grant.token == token));
}

/// Dropped on its way, an adoption gives the lock back.
#[test]
fn an_adoption_dropped_at_every_poll_leaves_nothing() {
    for polls in 0.. {
        let embedded = Embedded::new();
        let (here, there) = (embedded.client("here"), embedded.client("there"));
        let grant = embedded.run(transferable(&here)).into_grant().unwrap();
        let adopted = crate::common::polled_at_most(there.adopt(grant), polls);
        let done = embedded.run(adopted);
        let was_done = done.is_some();
        drop(done);
        embedded.pass(seconds(17));
        assert_eq!(embedded.residue(), [""; 0], "after {polls} polls");
        if was_done {
            assert!(polls > 2);
            return;
        }
    }
}

#[test]
fn each_lock_keeps_its_own_ttl() {
    let embedded = Embedded::new();
    let (here, there) = (embedded.client("here"), embedded.client("there"));
    let guard = async { here.acquire("k").ttl(ttl(60)).transferable().await.unwrap() };
    let grant = embedded.run(guard).into_grant().unwrap();
    assert_eq!(grant.ttl(), ttl(60));
    embedded.pass(seconds(40));
    let guard = embedded.run(there.adopt(grant)).unwrap();
    assert!(guard.remaining() > seconds(50), "{:?}", guard.remaining());
}
