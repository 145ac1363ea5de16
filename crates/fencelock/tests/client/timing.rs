//! Ttls, periods and deadlines (K16).

use std::sync::Arc;
use std::time::Duration;

use fencelock::spi::Ttl;
use fencelock::{Client, Error, ErrorKind, LostReason, Release};
use sim_runtime::World;

use crate::common::{Act, Double, Op, Scene, is_ready, millis, seconds, ttl};

/// B118: a ttl that is too short is refused where it is made.
#[test]
fn ttl_below_the_least_is_an_invalid_request() {
    for short in [
        millis(1),
        millis(5),
        millis(199),
        millis(200),
        millis(999),
        Duration::ZERO,
    ] {
        let refused: Error = Ttl::new(short).unwrap_err().into();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
    }
}

/// B118: a store slower than the ttl never makes a guard that is not held.
#[test]
fn store_slower_than_the_ttl_gives_an_error_and_no_panic() {
    for op in [Op::Open, Op::Insert] {
        for act in [Act::Slow(millis(1200)), Act::LateReply(millis(1200))] {
            let scene = Scene::with(|builder| builder.ttl(Ttl::MIN));
            scene.store.always(op, act);
            let failed = scene.run(scene.client.try_acquire("k")).unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::Unavailable);
            scene.store.heal();
            scene.pass(seconds(5));
            assert_eq!(scene.store.residue(), (0, 0));
        }
    }
}

/// A grant whose answer came in time for the caller, and too late for the session, is given back.
#[test]
fn grant_that_came_too_late_is_given_back() {
    let scene = Scene::new();
    scene.store.always(Op::KeepAlive, Act::TIMEOUT);
    let _opens_the_session = scene.guard("first");
    scene.pass(seconds(10));
    scene.store.next(Op::Insert, [Act::LateReply(seconds(4))]);
    let late = scene.run(scene.client.try_acquire("k")).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Unavailable);
    scene.pass(seconds(2));
    assert_eq!(scene.store.holder("k"), None);
}

/// B124: what cannot work is refused by the builder, by the name of the constraint.
#[test]
fn builder_names_the_broken_constraint() {
    let world = World::new(1);
    let store = Double::new(world.runtime("store"));
    let builder = || Client::builder(store.clone()).runtime(world.runtime("a"));
    for (every, rule) in [
        (Duration::ZERO, "renew period"),
        (seconds(15), "renew deadline"),
        (seconds(16), "renew deadline"),
        (seconds(30), "renew deadline"),
    ] {
        let refused = builder().renew_every(every).build().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
        assert!(refused.to_string().contains(rule), "{refused}");
    }
    let refused = builder().renew_deadline(seconds(15)).build().unwrap_err();
    assert!(refused.to_string().contains("ttl 15s"), "{refused}");

    let slow = store.clone().with_min_ttl(ttl(2));
    let refused = Client::builder(slow)
        .runtime(world.runtime("b"))
        .ttl(Ttl::MIN)
        .build();
    let refused = refused.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("ttl 1s is below the store's least, 2s"),
        "{refused}"
    );
}

/// B124: the same for the ttl of one acquire.
#[test]
fn acquire_refuses_a_ttl_below_the_stores_least() {
    let world = World::new(1);
    let runtime = world.runtime("a");
    let store = Double::new(Arc::clone(&runtime)).with_min_ttl(ttl(2));
    let client = Client::builder(store).runtime(runtime).build().unwrap();
    let refused = world
        .block_on(async { client.acquire("k").ttl(Ttl::MIN).await })
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
}

#[test]
fn without_a_runtime_the_builder_says_so() {
    let world = World::new(1);
    let store = Double::new(world.runtime("a"));
    let refused = Client::builder(store).build().unwrap_err();
    assert!(refused.to_string().contains("tokio runtime"), "{refused}");
}

#[test]
fn renewals_keep_the_chosen_period_and_deadline() {
    let scene = Scene::with(|builder| {
        builder
            .ttl(ttl(10))
            .renew_every(seconds(2))
            .renew_deadline(seconds(6))
    });
    let guard = scene.guard("k");
    assert_eq!(guard.remaining(), seconds(6));
    scene.pass(seconds(9));
    assert_eq!(scene.store.count(Op::KeepAlive), 4);
    scene.store.cut_off(&Act::TIMEOUT);
    scene.run(guard.lost());
    assert_eq!(scene.world.elapsed(), seconds(14));
}

/// B125: a guard without renewal ends by itself.
#[test]
fn guard_without_renewal_expires() {
    let scene = Scene::new();
    let _keeps_the_session = scene.guard("other");
    let acquired = scene.run(async { scene.client.acquire("k").without_renewal().await });
    let guard = acquired.unwrap();
    scene.pass(seconds(13));
    assert!(guard.is_held());
    scene.pass(millis(3_500));
    assert!(guard.remaining().is_zero());
    assert!(!guard.is_held());
    assert!(is_ready(guard.lost()));
    assert_eq!(guard.check().unwrap_err().reason, LostReason::Expired);
    assert_eq!(scene.run(guard.release()).unwrap(), Release::AlreadyGone);
    assert_eq!(scene.store.holder("k"), None, "the client gave it back");
}

/// One session for each ttl, however many locks.
#[test]
fn sessions_are_shared_by_ttl() {
    let scene = Scene::new();
    let guards = scene.run(async {
        let mut guards = Vec::new();
        for (name, seconds) in [("a", 15), ("b", 15), ("c", 60), ("d", 60)] {
            let guard = scene.client.acquire(name).ttl(ttl(seconds)).await;
            guards.push(guard.unwrap());
        }
        guards
    });
    assert_eq!(scene.store.count(Op::Open), 2);
    assert!(guards[2].remaining() > seconds(50));
}

/// A session takes no more than the store's limit; the next lock gets another.
#[test]
fn full_session_is_followed_by_another() {
    let world = World::new(1);
    let runtime = world.runtime("a");
    let store = Double::new(Arc::clone(&runtime)).with_most_grants(2);
    let client = Client::builder(store.clone())
        .runtime(runtime)
        .build()
        .unwrap();
    let guards: Vec<_> = ["a", "b", "c", "d", "e"]
        .map(|key| world.block_on(crate::common::acquired(&client, key)))
        .into();
    assert_eq!(store.count(Op::Open), 3);
    drop(guards);
}
