//! The client's books and the store's (K19).

use fencelock::{Attempt, Release};

use crate::common::{Act, Op, Scene, acquired, is_free, key, millis, seconds};

/// B140: of two tasks of one client one has the lock, the other is told or waits.
#[test]
fn two_tasks_of_one_client_do_not_share_a_lock() {
    let scene = Scene::new();
    let (one, two) = scene
        .run(async { tokio::join!(scene.client.try_acquire("k"), scene.client.try_acquire("k")) });
    let (one, two) = (one.unwrap(), two.unwrap());
    let (guard, holder) = match (one, two) {
        (Attempt::Acquired(guard), Attempt::Held(holder)) => (guard, holder),
        (Attempt::Held(holder), Attempt::Acquired(guard)) => (guard, holder),
        other => panic!("{other:?}"),
    };
    assert_eq!(holder.unwrap().token, guard.token());

    let waiting = async { scene.client.acquire("k").await.unwrap() };
    let releasing = async {
        scene.runtime.sleep(seconds(3)).await;
        guard.release().await.unwrap();
    };
    let (second, _) = scene.run(async { tokio::join!(waiting, releasing) });
    assert_eq!(scene.store.holder("k"), Some(second.token()));
}

/// B143: a guard without renewal that was forgotten does not keep its key.
#[test]
fn forgotten_guard_without_renewal_frees_its_key() {
    let scene = Scene::new();
    let acquired = scene.run(async { scene.client.acquire("k").without_renewal().await });
    std::mem::forget(acquired.unwrap());
    assert!(!scene.run(is_free(&scene.client, "k")));
    scene.pass(seconds(15));
    assert!(scene.run(is_free(&scene.client, "k")));
}

/// B143: any other guard that was forgotten is held until its client shuts down.
#[test]
fn forgotten_guard_is_held_until_shutdown() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    let token = guard.token();
    std::mem::forget(guard);
    scene.pass(seconds(100));
    assert_eq!(scene.store.holder("k"), Some(token));
    let report = scene.run(scene.client.clone().shutdown());
    assert_eq!(report.released, [(key("k"), token)]);
    assert!(scene.run(is_free(&scene.another("b"), "k")));
}

/// B145: a panic in the store's release does not keep the key.
#[test]
fn panic_in_a_release_does_not_keep_the_key() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.next(Op::Delete, [Act::Panic]);
    assert_eq!(scene.run(guard.release()).unwrap(), Release::Released);
    let next = scene
        .run(async { scene.client.acquire("k").await })
        .unwrap();
    assert_eq!(scene.store.holder("k"), Some(next.token()));
}

/// B145: nor does one in an insert, which the client gives up.
#[test]
fn panic_in_an_insert_is_an_error() {
    let scene = Scene::new();
    scene.store.next(Op::Insert, [Act::Panic]);
    assert!(scene.run(scene.client.try_acquire("k")).is_err());
    scene.pass(millis(1));
    assert_eq!(scene.store.count(Op::Abandon), 1);
    assert!(scene.run(is_free(&scene.client, "k")));
}

/// An attempt that the store calls over is followed by a new one.
#[test]
fn session_that_the_store_lost_is_replaced_at_once() {
    let scene = Scene::new();
    let old = scene.guard("old");
    scene.store.kill_sessions();
    let new = scene.run(acquired(&scene.client, "k"));
    assert!(new.is_held());
    assert!(
        !old.is_held(),
        "the store's word counts for all guards of the session"
    );
    assert_eq!(scene.store.count(Op::Open), 2);
}
