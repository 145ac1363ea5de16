//! What a client tells of its sessions.

use std::time::Duration;

use fencelock::{Health, SessionHealth, SessionPhase};

use crate::common::{Act, Op, Scene, acquired, millis, seconds, ttl};

/// The only session of a client.
fn session(health: &Health) -> &SessionHealth {
    let [session] = &*health.sessions else {
        panic!("{health:?}");
    };
    session
}

#[test]
fn a_client_that_was_asked_nothing_is_well() {
    let scene = Scene::new();
    let health = scene.client.health();
    assert!(health.is_well());
    assert_eq!(health.sessions, []);
    assert_eq!(scene.store.count(Op::Open), 0);
}

#[test]
fn a_session_tells_what_it_has_and_how_long_it_lasts() {
    let scene = Scene::new();
    let other = scene.another("other");
    let _held = scene.run(acquired(&other, "k"));
    let _guards = [scene.guard("a"), scene.guard("b")];
    let wait = async { scene.client.acquire("k").await };
    let waits = scene.runtime.timeout(seconds(3), wait);
    let look = async {
        scene.runtime.sleep(seconds(2)).await;
        scene.client.health()
    };
    let (waited, health) = scene.run(async { tokio::join!(waits, look) });
    assert!(waited.is_err());
    assert!(health.is_well());
    let told = session(&health);
    assert_eq!((told.ttl, told.phase), (ttl(15), SessionPhase::Open));
    assert_eq!(told.renewed_ago, Some(seconds(2)));
    assert_eq!(told.remaining, millis(11_500));
    assert_eq!((told.guards, told.waiters), (2, 1));
    assert_eq!((told.overdue, told.in_jeopardy), (false, 0));

    scene.pass(seconds(60));
    let health = scene.client.health();
    let told = session(&health);
    assert!(told.renewed_ago.unwrap() <= seconds(5));
    assert_eq!((told.guards, told.waiters), (2, 0));
}

#[test]
fn each_ttl_is_a_session_of_its_own() {
    let scene = Scene::new();
    let _usual = scene.guard("a");
    let _long = scene.run(async { scene.client.acquire("b").ttl(ttl(60)).await });
    let ttls: Vec<_> = scene
        .client
        .health()
        .sessions
        .iter()
        .map(|s| s.ttl)
        .collect();
    assert_eq!(ttls, [ttl(15), ttl(60)]);
}

#[test]
fn an_overdue_renewal_puts_guards_in_jeopardy_and_at_last_they_are_lost() {
    let scene = Scene::new();
    let _guard = scene.guard("a");
    let fixed = async { scene.client.acquire("b").without_renewal().await };
    let _fixed = scene.run(fixed).unwrap();
    scene.store.cut_off(&Act::Hang);
    scene.pass(millis(9_200));
    assert!(scene.client.health().is_well(), "a renewal may still come");

    scene.pass(millis(100));
    let health = scene.client.health();
    assert!(!health.is_well());
    let told = session(&health);
    assert_eq!((told.overdue, told.guards, told.in_jeopardy), (true, 2, 1));
    assert_eq!(told.renewed_ago, Some(millis(9_300)));
    assert_eq!(told.remaining, millis(4_200));

    scene.pass(millis(4_200));
    let health = scene.client.health();
    assert!(!health.is_well());
    let told = session(&health);
    assert_eq!((told.phase, told.guards), (SessionPhase::Lost, 0));
    assert_eq!(told.remaining, Duration::ZERO);

    scene.store.heal();
    scene.pass(seconds(60));
    assert_eq!(scene.client.health().sessions, [], "it is over");
    assert!(scene.client.health().is_well());
}

#[test]
fn a_session_that_is_being_opened_or_closed_is_well() {
    let scene = Scene::new();
    scene.store.always(Op::Open, Act::LateReply(seconds(2)));
    scene.store.always(Op::Close, Act::LateReply(seconds(2)));
    let opening = async {
        scene.runtime.sleep(seconds(1)).await;
        scene.client.health()
    };
    let (guard, health) = scene.run(async {
        let acquire = async { scene.client.acquire("a").await };
        tokio::join!(acquire, opening)
    });
    let told = session(&health);
    assert_eq!(
        (told.phase, told.renewed_ago),
        (SessionPhase::Opening, None)
    );
    assert!(health.is_well());

    scene.run(guard.unwrap().release()).unwrap();
    // Its renewal is due 5 s after it was opened, and nobody needs it.
    scene.pass(seconds(4));
    let health = scene.client.health();
    assert_eq!(session(&health).phase, SessionPhase::Closing);
    assert!(health.is_well());
}

#[test]
fn a_client_that_was_shut_down_is_not_well() {
    let scene = Scene::new();
    let client = scene.client.clone();
    scene.run(client.shutdown());
    let health = scene.client.health();
    assert!(health.shut_down);
    assert!(!health.is_well());
}
