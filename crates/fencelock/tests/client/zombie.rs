//! Locks that nobody uses are not kept (K05).

use std::panic::{AssertUnwindSafe, catch_unwind};

use fencelock::LostReason;

use crate::common::{Act, Op, Scene, acquired, is_free, millis, polled_at_most, seconds};

/// B37: however acquire, renewal and release interleave, nothing is renewed after the release.
#[test]
fn nothing_is_renewed_after_a_release() {
    for reply in [millis(0), millis(500), seconds(2)] {
        for held_for in [
            millis(0),
            millis(4_900),
            millis(5_000),
            millis(5_100),
            millis(7_000),
        ] {
            let scene = Scene::new();
            scene.store.always(Op::KeepAlive, Act::LateReply(reply));
            scene.store.always(Op::Delete, Act::LateReply(reply));
            let guard = scene.guard("k");
            scene.pass(held_for);
            let token = guard.token();
            scene.run(guard.release()).unwrap();
            let seen = scene.store.renewals().len();
            scene.pass(seconds(60));
            let later = &scene.store.renewals()[seen..];
            assert!(
                later
                    .iter()
                    .flat_map(|asked| &asked.grants)
                    .all(|grant| grant.token != token)
            );
            assert_eq!(scene.store.residue(), (0, 0), "{reply:?} {held_for:?}");
        }
    }
}

/// B38: an acquire that is dropped after its request was sent leaves nothing behind.
#[test]
fn dropped_acquire_is_undone() {
    let scene = Scene::new();
    scene.store.next(Op::Insert, [Act::LateReply(seconds(2))]);
    let other = scene.another("b");
    scene.run(async {
        let limit = scene
            .runtime
            .timeout(seconds(1), scene.client.try_acquire("k"));
        assert!(limit.await.is_err());
    });
    assert!(scene.run(is_free(&other, "k")));
    assert!(
        scene
            .store
            .renewals()
            .iter()
            .all(|asked| asked.grants.is_empty())
    );
}

/// B38: the same before the request arrives.
#[test]
fn dropped_acquire_is_undone_when_its_request_arrives_late() {
    let scene = Scene::new();
    scene.store.next(Op::Insert, [Act::Slow(seconds(2))]);
    let other = scene.another("b");
    scene.run(async {
        let limit = scene
            .runtime
            .timeout(seconds(1), scene.client.try_acquire("k"));
        assert!(limit.await.is_err());
    });
    scene.pass(seconds(5));
    assert!(scene.run(is_free(&other, "k")));
}

/// B40: a task that panics gives its guard back.
#[test]
fn panicking_task_gives_its_guard_back() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    let task = scene.runtime.run_to_end(async move {
        let _guard = guard;
        if true {
            panic!("planted");
        }
    });
    assert!(scene.run(task).is_err());
    let other = scene.another("b");
    scene.pass(millis(1));
    assert!(scene.run(is_free(&other, "k")));
}

/// B40: so does an unwind that goes through the guard on the spot.
#[test]
fn unwinding_gives_the_guard_back() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard;
        panic!("planted");
    }));
    assert!(caught.is_err());
    scene.pass(millis(1));
    assert!(scene.run(is_free(&scene.client, "k")));
}

/// B41: in whatever order client and guard are dropped, renewals end and the key is free within the
/// ttl.
#[test]
fn dropping_client_and_guard_in_any_order_frees_the_key() {
    type Order = fn(fencelock::Client, fencelock::Guard);
    let orders: [(&str, Order); 4] = [
        ("client only", |client, guard| {
            drop(client);
            std::mem::forget(guard);
        }),
        ("client, guard", |client, guard| {
            drop(client);
            drop(guard);
        }),
        ("guard, client", |client, guard| {
            drop(guard);
            drop(client);
        }),
        ("guard only", |client, guard| {
            drop(guard);
            std::mem::forget(client);
        }),
    ];
    for reachable in [true, false] {
        for (name, order) in orders {
            let scene = Scene::new();
            let mine = scene.another("mine");
            let guard = scene.run(acquired(&mine, "k"));
            scene.pass(seconds(7));
            if !reachable {
                scene.store.cut_off(&Act::TIMEOUT);
            }
            let renewed = scene.store.count(Op::KeepAlive);
            order(mine, guard);
            scene.pass(if reachable { millis(1) } else { seconds(15) });
            scene.store.heal();
            assert_eq!(scene.store.count(Op::KeepAlive), renewed, "{name}");
            assert!(scene.run(is_free(&scene.client, "k")), "{name}");
        }
    }
}

/// B41: a guard that outlives its client says so.
#[test]
fn guard_is_lost_with_its_client() {
    let scene = Scene::new();
    let mine = scene.another("mine");
    let clone = mine.clone();
    let guard = scene.run(acquired(&mine, "k"));
    drop(mine);
    scene.pass(seconds(60));
    assert!(guard.is_held(), "a clone lives");
    drop(clone);
    assert_eq!(guard.check().unwrap_err().reason, LostReason::SessionClosed);
}

/// B43: a release that fails ends the renewals all the same, and is repeated until it is done.
#[test]
fn failed_release_is_repeated_and_not_renewed() {
    let scene = Scene::new();
    let keeps_the_session = scene.guard("other");
    let guard = scene.guard("k");
    let token = guard.token();
    scene.store.always(Op::Delete, Act::TIMEOUT);
    let failed = scene.run(guard.release()).unwrap_err();
    assert_eq!(failed.kind(), fencelock::ErrorKind::Unavailable);
    assert_eq!(scene.store.holder("k"), Some(token));
    scene.store.heal();
    scene.pass(seconds(5));
    assert_eq!(scene.store.holder("k"), None);
    let asked = scene.store.renewals();
    assert!(
        asked
            .iter()
            .flat_map(|asked| &asked.grants)
            .all(|grant| grant.token != token)
    );
    assert!(keeps_the_session.is_held());
}

/// A session that nobody uses any more is closed when its renewal is due, and opened anew.
#[test]
fn session_is_kept_for_nobody() {
    let scene = Scene::new();
    scene.run(scene.guard("k").release()).unwrap();
    assert_eq!(scene.store.residue(), (1, 0));
    scene.pass(seconds(6));
    assert_eq!(scene.store.residue(), (0, 0));
    assert_eq!(scene.store.count(Op::KeepAlive), 0);
    assert!(scene.guard("k").is_held());
    assert_eq!(scene.store.count(Op::Open), 2);
}

/// B46: the reply to an insert is lost and its caller gone; the same client acquires again.
#[test]
fn orphan_of_a_lost_reply_is_removed() {
    let scene = Scene::new();
    scene.store.next(Op::Insert, [Act::LoseReply]);
    scene.store.next(Op::Abandon, [Act::TIMEOUT, Act::TIMEOUT]);
    let cut_off = polled_at_most(scene.client.try_acquire("k"), 2);
    assert!(scene.run(cut_off).is_none());
    let guard = scene
        .run(async { scene.client.acquire("k").await })
        .unwrap();
    assert_eq!(scene.store.holder("k"), Some(guard.token()));
    scene.run(guard.release()).unwrap();
    scene.pass(seconds(6));
    assert_eq!(scene.store.residue(), (0, 0));
}

/// A renewal does not take for a ghost what an acquire under way was just granted.
#[test]
fn renewal_spares_the_grant_whose_answer_is_under_way() {
    let scene = Scene::new();
    let _first = scene.guard("first");
    scene.pass(seconds(4));
    scene.store.next(Op::Insert, [Act::LateReply(seconds(3))]);
    let guard = scene.guard("k");
    assert_eq!(scene.store.count(Op::KeepAlive), 1, "it came in between");
    scene.pass(seconds(60));
    assert!(guard.is_held());
    assert_eq!(scene.store.holder("k"), Some(guard.token()));
}
