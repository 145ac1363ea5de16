//! Giving locks back (K01, K07, K23, K25).

use std::sync::{Arc, Mutex};

use fencelock::spi::{Effect, ErrorKind as StoreErrorKind};
use fencelock::{ErrorKind, LostReason, Release, Shutdown};

use crate::common::{Act, Op, Scene, acquired, is_free, is_ready, key, millis, seconds};

/// B05: a renewal that is under way when the guard is released revives nothing.
#[test]
fn renewal_under_way_does_not_undo_a_release() {
    for act in [Act::Slow(seconds(3)), Act::LateReply(seconds(3))] {
        let scene = Scene::new();
        scene.store.always(Op::KeepAlive, act);
        let guard = scene.guard("k");
        let held = guard.held();
        scene.pass(seconds(6));
        assert_eq!(scene.store.count(Op::KeepAlive), 1);
        assert_eq!(scene.run(guard.release()).unwrap(), Release::Released);
        scene.pass(seconds(10));
        assert_eq!(held.check().unwrap_err().reason, LostReason::Released);
        assert_eq!(scene.store.holder("k"), None);
    }
}

/// B05: a release that fails during shutdown does not keep the others from theirs; the report has
/// both.
#[test]
fn shutdown_releases_all_and_reports_all() {
    let scene = Scene::new();
    let (one, two) = (scene.guard("one"), scene.guard("two"));
    let tokens = (one.token(), two.token());
    scene.store.always(Op::Delete, Act::TIMEOUT);
    assert!(scene.run(one.release()).is_err());
    let report = scene.run(scene.client.clone().shutdown());
    let mut released = report.released;
    released.sort();
    assert_eq!(released, [(key("one"), tokens.0), (key("two"), tokens.1)]);
    assert_eq!(report.left_to_expire, []);
    assert_eq!(scene.store.residue(), (0, 0));
    assert_eq!(two.check().unwrap_err().reason, LostReason::SessionClosed);
    assert_eq!(scene.run(two.release()).unwrap(), Release::AlreadyGone);
}

/// Without the store, shutdown ends no later than the sessions and names what is left.
#[test]
fn shutdown_names_what_is_left_to_expire() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.cut_off(&Act::Hang);
    let begun = scene.world.elapsed();
    let report = scene.run(scene.client.clone().shutdown());
    let left_to_expire = vec![(key("k"), guard.token())];
    assert_eq!(
        report,
        Shutdown {
            released: vec![],
            left_to_expire
        }
    );
    assert!(scene.world.elapsed() - begun <= seconds(30));
}

#[test]
fn after_shutdown_calls_are_refused() {
    let scene = Scene::new();
    let clone = scene.client.clone();
    scene.run(clone.shutdown());
    let refused = scene.run(scene.client.try_acquire("k")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ShuttingDown);
    let refused = scene
        .run(async { scene.client.acquire("k").await })
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ShuttingDown);
    assert_eq!(
        scene.run(scene.client.clone().shutdown()),
        Shutdown::default()
    );
}

/// A waiter learns of the shutdown when it next looks.
#[test]
fn shutdown_ends_waiting() {
    let scene = Scene::new();
    let other = scene.another("b");
    let _held = scene.run(acquired(&other, "k"));
    let waiting = async { scene.client.acquire("k").await };
    let stop = async {
        scene.runtime.sleep(seconds(1)).await;
        scene.client.clone().shutdown().await
    };
    let (waited, _) = scene.run(async { tokio::join!(waiting, stop) });
    assert_eq!(waited.unwrap_err().kind(), ErrorKind::ShuttingDown);
    assert!(scene.world.elapsed() < seconds(5));
}

/// B59: a release that met no store is done later.
#[test]
fn release_without_an_answer_is_done_later() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.always(Op::Delete, Act::TIMEOUT);
    let failed = scene.run(guard.release()).unwrap_err();
    assert_eq!(
        (failed.kind(), failed.effect()),
        (ErrorKind::Unavailable, Effect::Unknown)
    );
    assert!(scene.world.elapsed() <= seconds(4));
    scene.store.heal();
    scene.pass(seconds(2));
    assert_eq!(scene.store.holder("k"), None);
}

/// B59: a release whose answer was lost finds nothing when it is repeated, and that is its own doing;
/// a newer grant of the key is not touched.
#[test]
fn release_whose_answer_was_lost_is_still_a_release() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    let other = scene.another("b");
    scene.store.next(Op::Delete, [Act::LoseReply]);
    let taking_over = async {
        scene.runtime.sleep(millis(1)).await;
        acquired(&other, "k").await
    };
    let (release, newer) = scene.run(async { tokio::join!(guard.release(), taking_over) });
    assert_eq!(release.unwrap(), Release::Released);
    assert_eq!(scene.store.count(Op::Delete), 2);
    assert_eq!(scene.store.holder("k"), Some(newer.token()));
}

/// B61: renewal and release at once: the key is free and the release says so, in either order.
#[test]
fn renewal_and_release_at_once_end_free() {
    for (renewal, release) in [
        (Act::Slow(millis(10)), Act::Pass),
        (Act::Pass, Act::Slow(millis(10))),
        (Act::LateReply(millis(10)), Act::LateReply(millis(5))),
    ] {
        let scene = Scene::new();
        let guard = scene.guard("k");
        scene.store.next(Op::KeepAlive, [renewal]);
        scene.store.next(Op::Delete, [release]);
        // The renewal is due at this moment.
        scene.pass(seconds(5));
        assert_eq!(scene.run(guard.release()).unwrap(), Release::Released);
        scene.pass(seconds(1));
        assert_eq!(scene.store.count(Op::KeepAlive), 1);
        assert_eq!(scene.store.holder("k"), None);
    }
}

/// B142: however often it was renewed, one release frees the key.
#[test]
fn one_release_ends_it_after_many_renewals() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    for _ in 0..3 {
        scene.pass(seconds(1));
        scene.run(guard.ensure(seconds(13))).unwrap();
    }
    assert_eq!(scene.run(guard.release()).unwrap(), Release::Released);
    assert!(scene.run(is_free(&scene.another("b"), "k")));
}

/// B163: dropping `with_lock` in the midst of its work releases at once.
#[test]
fn dropped_with_lock_releases() {
    let scene = Scene::new();
    let work = scene
        .client
        .with_lock("k", |_| std::future::pending::<()>());
    let cut = scene.run(scene.runtime.timeout(seconds(1), work));
    assert!(cut.is_err());
    scene.pass(millis(1));
    assert!(scene.run(is_free(&scene.another("b"), "k")));
}

/// B164: the next holder begins only after the work has ended, also when the work is cut off.
#[test]
fn release_comes_after_the_end_of_the_work() {
    /// Work that notes when it has ended, however it ended.
    struct Work(Arc<Mutex<Vec<&'static str>>>);
    impl Drop for Work {
        fn drop(&mut self) {
            self.0.lock().unwrap().push("work ended");
        }
    }
    for cut_off in [true, false] {
        let scene = Scene::new();
        let story = Arc::new(Mutex::new(Vec::new()));
        let other = scene.another("b");
        let work = scene.client.with_lock("k", |_| {
            let work = Work(Arc::clone(&story));
            let runtime = Arc::clone(&scene.runtime);
            async move {
                let _work = work;
                runtime.sleep(seconds(2)).await;
            }
        });
        let limit = if cut_off { seconds(1) } else { seconds(9) };
        let next = async {
            scene.runtime.sleep(millis(100)).await;
            let guard = other.acquire("k").await.unwrap();
            story.lock().unwrap().push("next began");
            drop(guard);
        };
        let (worked, ()) =
            scene.run(async { tokio::join!(scene.runtime.timeout(limit, work), next) });
        assert_eq!(worked.is_err(), cut_off);
        assert_eq!(*story.lock().unwrap(), ["work ended", "next began"]);
    }
}

/// B166: a release without a definite answer is a release for its holder: nothing is held or
/// renewed.
#[test]
fn holder_believes_nothing_after_an_unanswered_release() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    let held = guard.held();
    scene.store.cut_off(&Act::Hang);
    let release = scene.run(guard.release()).unwrap_err();
    assert_eq!(release.effect(), Effect::Unknown);
    assert!(!held.is_held());
    scene.pass(seconds(60));
    assert!(scene.store.renewals().is_empty());
}

/// A release that is refused for good makes its session unfit: new locks get another, and it is
/// closed with its last guard.
#[test]
fn refused_release_retires_the_session() {
    let scene = Scene::new();
    let (one, two) = (scene.guard("one"), scene.guard("two"));
    let denied = Act::Refuse(StoreErrorKind::Denied, Effect::None);
    scene.store.always(Op::Delete, denied);
    let refused = scene.run(one.release()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    let three = scene.guard("three");
    assert_eq!(scene.store.count(Op::Open), 2);
    assert_eq!(scene.store.count(Op::Close), 0);
    drop(two);
    scene.pass(millis(1));
    assert_eq!(scene.store.count(Op::Close), 1);
    assert_eq!(scene.store.holder("one"), None);
    assert!(three.is_held());
}

/// B178: release or drop after a loss is not a second error, and asks the store nothing.
#[test]
fn release_after_a_loss_is_quiet() {
    let scene = Scene::new();
    let (one, two) = (scene.guard("one"), scene.guard("two"));
    scene.store.revoke_now("one", "alice", "test");
    scene.store.revoke_now("two", "alice", "test");
    scene.run(one.lost());
    assert_eq!(scene.run(one.release()).unwrap(), Release::AlreadyGone);
    assert!(is_ready(two.lost()));
    drop(two);
    scene.pass(seconds(1));
    assert_eq!(scene.store.count(Op::Delete), 0);
}

/// A release that finds the grant gone, before any renewal told, says so.
#[test]
fn release_of_what_was_ended_unnoticed_is_already_gone() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.revoke_now("k", "alice", "test");
    assert_eq!(scene.run(guard.release()).unwrap(), Release::AlreadyGone);
}

/// B25: on loss the work is dropped in its midst, and the caller is told.
#[test]
fn work_is_dropped_on_loss() {
    let scene = Scene::new();
    let dropped = Arc::new(Mutex::new(false));
    struct Work(Arc<Mutex<bool>>);
    impl Drop for Work {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let work = Work(Arc::clone(&dropped));
    let running = scene.client.with_lock("k", |held| async move {
        let _work = work;
        held.check().unwrap();
        std::future::pending::<()>().await;
    });
    let revoke = async {
        scene.runtime.sleep(seconds(1)).await;
        scene.store.revoke_now("k", "alice", "test");
    };
    let (outcome, ()) = scene.run(async { tokio::join!(running, revoke) });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(matches!(error.lost(), Some(LostReason::Revoked { .. })));
    assert!(*dropped.lock().unwrap());
}

/// A grant on its way back is accounted for: a renewal that ended it first would make its holder
/// believe that it had been lost.
#[test]
fn a_renewal_leaves_a_grant_to_its_release_that_is_under_way() {
    let scene = Scene::new();
    let (_kept, guard) = (scene.guard("kept"), scene.guard("k"));
    scene.pass(seconds(4));
    scene.store.next(Op::Delete, [Act::Slow(seconds(2))]);
    assert_eq!(scene.run(guard.release()).unwrap(), Release::Released);
    assert_eq!(scene.store.count(Op::KeepAlive), 1);
}
