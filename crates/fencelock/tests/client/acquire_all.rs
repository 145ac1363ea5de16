//! Several locks at once: all or none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fencelock::fence::HighWaterMark;
use fencelock::spi::{LockKey, Runtime};
use fencelock::{Client, ErrorKind, Guard, LostReason, Release};

use crate::common::{
    Double, Embedded, Op, Scene, acquired, client_of, is_free, key, millis, seconds, ttl,
};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// What the locks protect.
type Resources = Arc<BTreeMap<LockKey, HighWaterMark>>;

/// Some of the keys in some order, one of them perhaps twice.
fn draw(runtime: &dyn Runtime) -> Vec<&'static str> {
    let count = 1 + runtime.random() % 4;
    let drawn = (0..count).map(|_| runtime.random() % 5);
    let drawn = drawn.map(|at| KEYS[usize::try_from(at).unwrap()]);
    drawn.collect()
}

async fn work(client: Client, runtime: Arc<dyn Runtime>, resources: Resources) {
    for _ in 0..10 {
        let keys = draw(&*runtime);
        let all = client.acquire_all(keys).wait_at_most(Duration::MAX);
        let guards = all.await.unwrap();
        for _ in 0..3 {
            for (key, token) in guards.check().unwrap() {
                assert_eq!(resources[&key].admit(token), Ok(()));
            }
            runtime.sleep(runtime.jitter(millis(50))).await;
        }
        match runtime.random() % 3 {
            0 => drop(guards),
            _ => assert_eq!(guards.release().await.unwrap(), Release::Released),
        }
    }
}

#[test]
fn sets_that_overlap_are_never_waited_for_in_a_circle() {
    for seed in 0..100 {
        let scene = Embedded::of_seed(seed);
        let marks = KEYS.map(|name| (key(name), HighWaterMark::new()));
        let resources = Arc::new(BTreeMap::from(marks));
        let clients = ["x", "y"].map(|name| scene.client(name));
        let workers = clients.iter().chain(&clients);
        let at_work = workers.map(|client| {
            let runtime = scene.world.runtime("worker");
            let (own, resources) = (Arc::clone(&runtime), Arc::clone(&resources));
            runtime.run_to_end(work(client.clone(), own, resources))
        });
        let all = futures_util::future::try_join_all(at_work);
        let done = scene.run(scene.runtime.timeout(seconds(600), all));
        done.expect("they wait for each other").expect("sound work");
        scene.run(async {
            for client in clients {
                client.shutdown().await;
            }
        });
        assert_eq!(scene.residue(), [""; 0], "seed {seed}");
    }
}

#[test]
fn two_who_name_the_same_keys_in_other_orders_take_turns() {
    let scene = Embedded::new();
    let (x, y) = (scene.client("x"), scene.client("y"));
    let take = async |client: &Client, keys: [&str; 2]| {
        let guards = client.acquire_all(keys).await.unwrap();
        scene.runtime.sleep(seconds(1)).await;
        guards.check().unwrap();
        guards.release().await.unwrap();
    };
    scene.run(async { tokio::join!(take(&x, ["a", "b"]), take(&y, ["b", "a"])) });
    assert!(scene.world.elapsed() < millis(2_200));
}

#[test]
fn all_are_held_in_the_order_of_their_keys_each_with_its_own_token() {
    let scene = Scene::new();
    let all = async { scene.client.acquire_all(["b", "Z", "a", "b", "é"]).await };
    let guards = scene.run(all).unwrap();
    let keys: Vec<_> = guards.iter().map(Guard::key).map(LockKey::as_str).collect();
    assert_eq!(keys, ["Z", "a", "b", "é"], "bytes, each once");
    let tokens = guards.check().unwrap();
    for (guard, (key, token)) in guards.iter().zip(&tokens) {
        assert_eq!((guard.key(), &guard.token()), (key, token));
        assert_eq!(scene.store.holder(key.as_str()), Some(*token));
        assert_eq!(guards.get(key).map(Guard::token), Some(*token));
    }
    assert!(guards.get("c").is_none());
    assert_eq!(guards.remaining(), millis(13_500));
    assert_eq!(scene.run(guards.release()).unwrap(), Release::Released);
    assert_eq!(scene.store.residue().1, 0);
}

#[test]
fn what_was_had_is_given_back_when_the_time_is_over() {
    let scene = Scene::new();
    let other = scene.another("other");
    let held = scene.run(acquired(&other, "c"));
    let all = async {
        let all = scene.client.acquire_all(["d", "c", "b", "a"]);
        all.wait_at_most(seconds(3)).await
    };
    let timed_out = scene.run(all).unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    assert_eq!(timed_out.holder().unwrap().token, held.token());
    assert!(timed_out.to_string().contains("lock c "), "{timed_out}");
    assert_eq!(scene.world.elapsed(), seconds(3));
    scene.pass(millis(10));
    assert_eq!(scene.store.residue().1, 1, "only what the other holds");
}

#[test]
fn with_no_time_to_wait_each_is_tried_once() {
    let scene = Scene::new();
    let at_once = async |keys: [&str; 3]| {
        let all = scene.client.acquire_all(keys);
        all.wait_at_most(Duration::ZERO).await
    };
    let guards = scene.run(at_once(["a", "b", "c"])).unwrap();
    assert_eq!(scene.store.count(Op::Insert), 3);
    scene.run(guards.release()).unwrap();
    let other = scene.another("other");
    let _held = scene.run(acquired(&other, "b"));
    let before = scene.store.count(Op::Insert);
    let refused = scene.run(at_once(["a", "b", "c"])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    assert_eq!(scene.store.count(Op::Insert) - before, 2);
}

#[test]
fn what_was_had_is_given_back_when_the_wait_is_dropped() {
    let scene = Scene::new();
    let other = scene.another("other");
    let held = scene.run(acquired(&other, "c"));
    let all = scene.client.acquire_all(["a", "b", "c"]).into_future();
    let waits = scene.runtime.timeout(seconds(1), all);
    assert!(scene.run(waits).is_err());
    scene.run(held.release()).unwrap();
    scene.pass(millis(10));
    for name in ["a", "b", "c"] {
        assert!(scene.run(is_free(&other, name)), "{name}");
    }
}

#[test]
fn a_lock_lost_while_another_is_waited_for_ends_the_wait() {
    let scene = Scene::new();
    let other = scene.another("other");
    let _held = scene.run(acquired(&other, "b"));
    let all = async { scene.client.acquire_all(["a", "b"]).await };
    let revoke = async {
        scene.runtime.sleep(seconds(1)).await;
        scene.store.revoke_now("a", "alice", "stuck");
    };
    let (acquired, ()) = scene.run(async { tokio::join!(all, revoke) });
    let error = acquired.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(matches!(error.lost(), Some(LostReason::Revoked { .. })));
    assert!(error.to_string().contains("lock a "), "{error}");
    assert!(scene.world.elapsed() <= seconds(6), "by the next renewal");
}

#[test]
fn one_that_is_lost_ends_the_work_under_all() {
    let scene = Scene::new();
    let all = async { scene.client.acquire_all(["a", "b", "c"]).await };
    let guards = scene.run(all).unwrap();
    assert_eq!(scene.run(guards.run(async { 7 })), Ok(7));
    scene.store.revoke_now("b", "alice", "stuck");
    let lost = scene.run(guards.run(std::future::pending::<()>()));
    let lost = lost.unwrap_err();
    assert_eq!(lost.key.as_str(), "b");
    assert_eq!(scene.run(guards.lost()), lost);
    assert_eq!(guards.check(), Err(lost));
    assert_eq!(guards.remaining(), Duration::ZERO);
    assert!(guards.get("a").unwrap().is_held(), "the others still are");
    assert_eq!(scene.run(guards.release()).unwrap(), Release::AlreadyGone);
    assert_eq!(scene.store.residue().1, 0);
}

#[test]
fn no_key_a_bad_key_and_too_many_are_refused_before_anything_is_asked() {
    let scene = Scene::new();
    let store = Double::new(Arc::clone(&scene.runtime)).with_most_grants(2);
    let client = client_of(&store, &scene.runtime, "a", |builder| builder);
    let sets: [&[&str]; 3] = [&[], &["a", ""], &["a", "b", "c"]];
    for keys in sets {
        let all = async { client.acquire_all(keys.iter().copied()).await };
        let refused = scene.run(all).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest, "{keys:?}");
    }
    assert_eq!(store.count(Op::Open), 0);
    let twice = async { client.acquire_all(["a", "b", "a"]).await };
    assert!(scene.run(twice).is_ok(), "each counts once");
}

#[test]
fn all_are_held_with_the_ttl_that_is_asked_for() {
    let scene = Scene::new();
    let all = async { scene.client.acquire_all(["a", "b"]).ttl(ttl(60)).await };
    let guards = scene.run(all).unwrap();
    assert_eq!(guards.remaining(), seconds(54));
}
