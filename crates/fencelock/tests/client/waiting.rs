//! Waiting, and what the waiter is told (K25).

use std::error::Error as _;
use std::time::Duration;

use fencelock::ErrorKind;
use fencelock::spi::{Effect, ErrorKind as StoreErrorKind};

use crate::common::{Act, Op, Scene, acquired, is_ready, key, millis, seconds};

/// B173: a timeout says what stood in the way: the holder, or the store's error.
#[test]
fn timeout_tells_what_stood_in_the_way() {
    let scene = Scene::new();
    let other = scene.another("b");
    let held = scene.run(acquired(&other, "k"));
    let wait = async { scene.client.acquire("k").wait_at_most(millis(100)).await };
    let timed_out = scene.run(wait).unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    assert_eq!(timed_out.effect(), Effect::None);
    assert!(timed_out.is_retryable());
    let holder = timed_out.holder().unwrap();
    assert_eq!((holder.token, holder.owner.as_str()), (held.token(), "b"));
    assert!(timed_out.source().is_none());
    assert_eq!(scene.world.elapsed(), millis(100));

    let dead = Scene::new();
    dead.store.cut_off(&Act::TIMEOUT);
    let wait = async { dead.client.acquire("k").wait_at_most(millis(100)).await };
    let timed_out = dead.run(wait).unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    assert!(timed_out.holder().is_none());
    assert!(
        timed_out
            .source()
            .unwrap()
            .to_string()
            .contains("unavailable")
    );
}

/// B173: a try says the store's error itself.
#[test]
fn try_tells_the_stores_error() {
    let scene = Scene::new();
    let not_leader = Act::Refuse(StoreErrorKind::NotLeader, Effect::None);
    scene.store.next(Op::Insert, [not_leader]);
    let failed = scene.run(scene.client.try_acquire("k")).unwrap_err();
    assert_eq!(
        (failed.kind(), failed.effect()),
        (ErrorKind::NotLeader, Effect::None)
    );
    assert_eq!(
        scene.store.count(Op::Abandon),
        0,
        "there is nothing to undo"
    );
}

/// What waiting cannot mend ends it at once.
#[test]
fn lasting_error_ends_the_wait() {
    let scene = Scene::new();
    let denied = Act::Refuse(StoreErrorKind::Denied, Effect::None);
    scene.store.always(Op::Insert, denied);
    let refused = scene
        .run(async { scene.client.acquire("k").await })
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    assert_eq!(scene.world.elapsed(), Duration::ZERO);
}

/// B176: zero is exactly one try, next to nothing is short, the greatest duration does not overflow.
#[test]
fn waits_of_any_length_are_kept() {
    for wait in [Duration::ZERO, Duration::from_nanos(1)] {
        let scene = Scene::new();
        let other = scene.another("b");
        let _held = scene.run(acquired(&other, "k"));
        scene.store.always(Op::Insert, Act::Slow(millis(200)));
        let before = scene.store.count(Op::Insert);
        let acquire = async { scene.client.acquire("k").wait_at_most(wait).await };
        let timed_out = scene.run(acquire).unwrap_err();
        assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
        assert_eq!(scene.store.count(Op::Insert) - before, 1);
        assert_eq!(scene.world.elapsed(), millis(200));
    }
    let scene = Scene::new();
    let other = scene.another("b");
    let held = scene.run(acquired(&other, "k"));
    let acquire = async { scene.client.acquire("k").wait_at_most(Duration::MAX).await };
    let release = async {
        scene.runtime.sleep(seconds(3600)).await;
        held.release().await.unwrap();
    };
    let (acquired, ()) = scene.run(async { tokio::join!(acquire, release) });
    assert!(acquired.unwrap().is_held());
}

/// B176: one try ends within its limit though the store hangs.
#[test]
fn one_try_is_bounded() {
    let scene = Scene::new();
    scene.store.always(Op::Insert, Act::Hang);
    let acquire = async { scene.client.acquire("k").wait_at_most(Duration::ZERO).await };
    let timed_out = scene.run(acquire).unwrap_err();
    assert_eq!(
        (timed_out.kind(), timed_out.effect()),
        (ErrorKind::TimedOut, Effect::Unknown)
    );
    assert_eq!(scene.store.count(Op::Insert), 1);
    assert_eq!(scene.world.elapsed(), seconds(2));
    scene.pass(seconds(1));
    assert_eq!(scene.store.count(Op::Abandon), 1);
}

/// A store that hangs does not keep a waiter much longer than it would wait.
#[test]
fn wait_ends_though_the_store_hangs() {
    for op in [Op::Open, Op::Insert] {
        let scene = Scene::new();
        scene.store.always(op, Act::Hang);
        let acquire = async { scene.client.acquire("k").wait_at_most(seconds(30)).await };
        let timed_out = scene.run(acquire).unwrap_err();
        assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
        assert!(scene.world.elapsed() <= seconds(32), "{op:?}");
    }
}

#[test]
fn waiter_is_granted_soon_after_the_release() {
    let scene = Scene::new();
    let other = scene.another("b");
    let held = scene.run(acquired(&other, "k"));
    let waiting = async { scene.client.acquire("k").await.unwrap() };
    let releasing = async {
        scene.runtime.sleep(seconds(10)).await;
        held.release().await.unwrap();
    };
    let (guard, ()) = scene.run(async { tokio::join!(waiting, releasing) });
    assert!(guard.is_held());
    assert!(
        scene.world.elapsed() < millis(10_100),
        "{:?}",
        scene.world.elapsed()
    );
}

/// An error whose effect is unknown is followed by the same attempt, which finds what was done.
#[test]
fn lost_reply_is_found_again_by_the_same_attempt() {
    let scene = Scene::new();
    scene.store.next(Op::Insert, [Act::LoseReply]);
    let guard = scene
        .run(async { scene.client.acquire("k").await })
        .unwrap();
    assert_eq!(scene.store.count(Op::Insert), 2);
    assert_eq!(guard.token().as_u64(), 1, "it was granted once");
    scene.pass(seconds(60));
    assert!(guard.is_held());
    assert_eq!(scene.store.count(Op::Abandon), 0);
}

/// The session could not be opened at first.
#[test]
fn opening_is_tried_again_while_the_wait_lasts() {
    let scene = Scene::new();
    scene
        .store
        .next(Op::Open, [Act::TIMEOUT, Act::LoseReply, Act::Panic]);
    let guard = scene
        .run(async { scene.client.acquire("k").await })
        .unwrap();
    assert!(guard.is_held());
    scene.pass(seconds(20));
    assert_eq!(scene.store.residue(), (1, 1), "the failed ones are closed");
}

/// The key is checked before anything is done.
#[test]
fn bad_key_is_an_error_that_names_the_rule() {
    let scene = Scene::new();
    for bad in ["", "a\0b", &"x".repeat(513)] {
        let refused = scene.run(scene.client.try_acquire(bad)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
        assert!(refused.to_string().contains("key"), "{refused}");
        let refused = scene
            .run(async { scene.client.acquire(bad).await })
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
    }
    assert_eq!(scene.store.count(Op::Open), 0);
    assert!(is_ready(async { scene.client.acquire("").await }));
}

/// Keys come as text or checked.
#[test]
fn keys_come_in_any_form() {
    let scene = Scene::new();
    scene.run(async {
        let text = String::from("b");
        for guard in [
            scene.client.acquire("a").await.unwrap(),
            scene.client.acquire(&text).await.unwrap(),
            scene.client.acquire(format!("c/{text}")).await.unwrap(),
            scene.client.acquire(key("d")).await.unwrap(),
        ] {
            guard.release().await.unwrap();
        }
    });
}
