//! Renewals that fail, hang or stop, and what the holder is told (K02, K03, K04).

use crate::common::{Act, Op, Scene, acquired, is_ready, millis, seconds};
use fencelock::spi::{Effect, ErrorKind};
use fencelock::{LostReason, Release};

/// When a guard of the default ttl is lost after its last good renewal was sent.
const BELIEVED: std::time::Duration = millis(13_500);

/// B10: the loss is told no later than the local deadline, and to who asks only afterwards.
#[test]
fn loss_is_told_by_the_deadline_and_ever_after() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.cut_off(&Act::Hang);
    let begun = scene.world.elapsed();
    let lost = scene.run(guard.lost());
    assert!(scene.world.elapsed() - begun <= BELIEVED);
    assert_eq!(lost.reason, LostReason::Unreachable);
    assert!(!guard.is_held());
    assert!(is_ready(guard.lost()));
    assert_eq!(guard.check().unwrap_err(), lost);
    scene.pass(seconds(100));
    assert!(!guard.is_held());
}

/// B11: the deadline counts from when the last good renewal was sent, whatever call is pending.
#[test]
fn deadline_counts_from_the_sending_of_the_last_good_renewal() {
    let scene = Scene::new();
    // Each answer takes 2 s; the first renewal is sent 5 s after the opening.
    scene
        .store
        .always(Op::KeepAlive, Act::LateReply(seconds(2)));
    let guard = scene.guard("k");
    scene.pass(seconds(8));
    let sent = scene.store.times(Op::KeepAlive);
    assert_eq!(sent.len(), 1);
    scene.store.cut_off(&Act::Hang);
    let lost = scene.run(guard.lost());
    assert_eq!(scene.runtime.now(), sent[0] + BELIEVED);
    assert_eq!(lost.reason, LostReason::Unreachable);
}

/// B13: a revoke is one loss with its reason, and the renewals end.
#[test]
fn revoke_is_told_once_with_its_reason_and_renewals_end() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.revoke_now("k", "alice", "stuck since 03:00");
    let lost = scene.run(guard.lost());
    let LostReason::Revoked { by, reason } = &lost.reason else {
        panic!("{lost}");
    };
    assert_eq!(
        (by.as_str(), reason.as_str()),
        ("alice", "stuck since 03:00")
    );
    assert!(lost.reason.is_definite());
    let renewals = scene.store.count(Op::KeepAlive);
    assert_eq!(renewals, 1);
    scene.pass(seconds(100));
    assert_eq!(scene.store.count(Op::KeepAlive), renewals);
    assert_eq!(scene.store.count(Op::Delete), 0);
    assert_eq!(guard.check().unwrap_err(), lost);
}

/// B14: whatever a renewal meets, only a confirmed one keeps the guard; what is no definite answer
/// takes it only once the deadline has passed.
#[test]
fn every_renewal_but_a_confirmed_one_ends_in_loss() {
    let table = [
        ("renewed", Act::Pass, None),
        ("unavailable", Act::TIMEOUT, Some(LostReason::Unreachable)),
        (
            "no leader",
            Act::Refuse(ErrorKind::NotLeader, Effect::None),
            Some(LostReason::Unreachable),
        ),
        (
            "denied",
            Act::Refuse(ErrorKind::Denied, Effect::None),
            Some(LostReason::Unreachable),
        ),
        (
            "protocol",
            Act::Refuse(ErrorKind::Protocol, Effect::Unknown),
            Some(LostReason::Unreachable),
        ),
        ("hangs", Act::Hang, Some(LostReason::Unreachable)),
        ("panics", Act::Panic, Some(LostReason::Unreachable)),
        (
            "session gone",
            Act::Refuse(ErrorKind::SessionGone, Effect::None),
            Some(LostReason::SessionClosed),
        ),
    ];
    for (name, act, expected) in table {
        let scene = Scene::new();
        let guard = scene.guard("k");
        scene.store.always(Op::KeepAlive, act);
        scene.pass(millis(13_400));
        let definite = expected.as_ref().is_some_and(LostReason::is_definite);
        assert_eq!(guard.is_held(), !definite, "{name}, before the deadline");
        scene.pass(seconds(30));
        let found = guard.check().err().map(|lost| lost.reason);
        assert_eq!(found, expected, "{name}");
    }
}

/// B14: the session that the store has no more is a definite loss.
#[test]
fn session_killed_behind_the_client_is_a_definite_loss() {
    let scene = Scene::new();
    let (one, two) = (scene.guard("one"), scene.guard("two"));
    scene.store.kill_sessions();
    let lost = scene.run(one.lost());
    assert_eq!(lost.reason, LostReason::SessionClosed);
    assert_eq!(two.check().unwrap_err().reason, LostReason::SessionClosed);
    assert!(scene.world.elapsed() <= seconds(6), "with the next renewal");
}

/// B16, B115: a thousand guards are renewed by one call, so none waits for another.
#[test]
fn a_thousand_guards_share_each_renewal() {
    let scene = Scene::new();
    let guards: Vec<_> = (0..1000).map(|i| scene.guard(&format!("k{i}"))).collect();
    // Answers take 80 % of the period; every twentieth renewal fails.
    scene
        .store
        .always(Op::KeepAlive, Act::LateReply(seconds(4)));
    for _ in 0..20 {
        let acts = std::iter::repeat_n(Act::LateReply(seconds(4)), 19).chain([Act::TIMEOUT]);
        scene.store.next(Op::KeepAlive, acts);
    }
    scene.pass(seconds(1500));
    assert!(guards.iter().all(|guard| guard.is_held()));
    let sent = scene.store.times(Op::KeepAlive);
    let longest = sent
        .windows(2)
        .map(|pair| pair[1].saturating_since(pair[0]))
        .max();
    assert!(longest.unwrap() <= seconds(5), "{longest:?}");
    assert!(
        scene
            .store
            .renewals()
            .iter()
            .all(|asked| asked.grants.len() == 1000)
    );
    assert_eq!(scene.store.count(Op::Open), 1);
    assert_eq!(scene.store.count(Op::Extend), 0);
}

/// B17: one renewal that panics, fails or hangs does not stop the next, and the guard stays valid.
#[test]
fn one_bad_renewal_is_followed_by_the_next() {
    for bad in [Act::Panic, Act::TIMEOUT, Act::Hang] {
        let scene = Scene::new();
        let guard = scene.guard("k");
        let third = [Act::Pass, Act::Pass, bad.clone()];
        scene.store.next(Op::KeepAlive, third);
        for _ in 0..600 {
            scene.pass(millis(100));
            assert!(guard.is_held(), "{bad:?}");
        }
        assert!(scene.store.count(Op::KeepAlive) > 10);
    }
}

/// B22: what ends a session in the store is told within one renew period, to a holder that waits
/// for its work and the loss and is woken by nothing else.
#[test]
fn end_of_the_session_is_told_within_a_renew_period() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.pass(seconds(6));
    scene.store.kill_sessions();
    let begun = scene.world.elapsed();
    let lost = scene
        .run(guard.run(std::future::pending::<()>()))
        .unwrap_err();
    assert_eq!(lost.reason, LostReason::SessionClosed);
    assert!(lost.reason.is_definite());
    assert!(scene.world.elapsed() - begun <= seconds(5));
}

/// B23: with a store that never answers again the loss is told at the deadline, and neither a
/// release nor a drop waits for it.
#[test]
fn store_that_hangs_for_ever_holds_nobody_up() {
    let scene = Scene::new();
    let (guard, other) = (scene.guard("k"), scene.guard("other"));
    scene.store.cut_off(&Act::Hang);
    let begun = scene.world.elapsed();
    let (lost, also) = scene.run(async { tokio::join!(guard.lost(), other.lost()) });
    assert_eq!(scene.world.elapsed() - begun, BELIEVED);
    assert_eq!(
        (lost.reason, also.reason),
        (LostReason::Unreachable, LostReason::Unreachable)
    );
    let released = scene.run(guard.release()).unwrap();
    drop(other);
    assert_eq!(released, Release::AlreadyGone);
    assert_eq!(scene.world.elapsed() - begun, BELIEVED);
}

/// B26, B29: a passing error is not seen, definite or not; a lasting one is `Unreachable`, a margin
/// before the store's end.
#[test]
fn passing_error_is_invisible_and_a_lasting_one_is_unreachable() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    let token = guard.token();
    let deadlock = Act::Refuse(ErrorKind::Unavailable, Effect::None);
    scene.store.next(Op::KeepAlive, [Act::TIMEOUT, deadlock]);
    scene.pass(seconds(60));
    assert_eq!(guard.check(), Ok(token));
    scene.store.always(Op::KeepAlive, Act::TIMEOUT);
    let lost = scene.run(guard.lost());
    assert_eq!(lost.reason, LostReason::Unreachable);
    assert!(!lost.reason.is_definite());
    assert_eq!(
        scene.store.holder("k"),
        Some(token),
        "the store still has it"
    );
}

/// Failed renewals are tried again with growing pauses, but none so long that the deadline passes
/// without a try.
#[test]
fn store_that_comes_back_before_the_deadline_is_found() {
    for back_after in (5_000..13_400).step_by(100) {
        let scene = Scene::new();
        let guard = scene.guard("k");
        scene.store.always(Op::KeepAlive, Act::TIMEOUT);
        scene.pass(millis(back_after));
        scene.store.heal();
        scene.pass(seconds(30));
        assert!(guard.is_held(), "back after {back_after} ms");
    }
}

/// B31: four ways to lose a lock are four reasons; only what the store said is definite.
#[test]
fn each_way_to_lose_has_its_own_reason() {
    let reason_after = |cause: fn(&Scene)| {
        let scene = Scene::new();
        let guard = scene.guard("k");
        cause(&scene);
        scene.run(guard.lost()).reason
    };
    let taken_over = reason_after(|scene| {
        scene.store.kill_sessions();
        let other = scene.another("b");
        std::mem::forget(scene.run(acquired(&other, "k")));
    });
    let outage = reason_after(|scene| scene.store.cut_off(&Act::TIMEOUT));
    let forced = reason_after(|scene| scene.store.revoke_now("k", "alice", "why not"));
    let scene = Scene::new();
    let unrenewed = scene.run(async { scene.client.acquire("k").without_renewal().await });
    let own_deadline = scene.run(unrenewed.unwrap().lost()).reason;

    assert_eq!(taken_over, LostReason::SessionClosed);
    assert_eq!(outage, LostReason::Unreachable);
    assert!(matches!(forced, LostReason::Revoked { .. }));
    assert_eq!(own_deadline, LostReason::Expired);
    let definite = [taken_over, outage, forced, own_deadline].map(|reason| reason.is_definite());
    assert_eq!(definite, [true, false, true, false]);
}

/// B32, B34: an answer that comes after the deadline revives nothing.
#[test]
fn late_answer_does_not_revive() {
    for late in [seconds(14), seconds(18)] {
        let scene = Scene::new();
        scene.store.always(Op::KeepAlive, Act::LateReply(late));
        let guard = scene.guard("k");
        let lost = scene.run(guard.lost());
        assert_eq!(lost.reason, LostReason::Unreachable);
        assert_eq!(scene.world.elapsed(), BELIEVED);
        scene.store.heal();
        for _ in 0..300 {
            scene.pass(millis(100));
            assert!(!guard.is_held());
        }
        assert_eq!(scene.run(guard.release()).unwrap(), Release::AlreadyGone);
    }
}

/// B44: never lost and renewed at once, whatever fails.
#[test]
fn what_is_lost_is_not_renewed() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    let other = scene.guard("other");
    scene.store.revoke_now("k", "alice", "test");
    scene.run(guard.lost());
    let seen = scene.store.renewals().len();
    scene.pass(seconds(60));
    assert!(other.is_held());
    for asked in &scene.store.renewals()[seen..] {
        assert!(
            asked
                .grants
                .iter()
                .all(|grant| grant.token != guard.token())
        );
    }
}

#[test]
fn jeopardy_is_told_before_the_loss() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.pass(seconds(60));
    assert!(!is_ready(guard.jeopardy()));
    scene.store.cut_off(&Act::TIMEOUT);
    let left = scene.run(guard.jeopardy()).unwrap();
    assert!(left > seconds(3) && left < seconds(6), "{left:?}");
    assert!(guard.is_held());
    scene.store.heal();
    scene.pass(seconds(6));
    assert!(!is_ready(guard.jeopardy()), "it was renewed");
    scene.store.cut_off(&Act::TIMEOUT);
    scene.run(guard.lost());
    assert!(scene.run(guard.jeopardy()).is_err());
}

#[test]
fn ensure_renews_only_when_less_is_left() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.pass(seconds(3));
    let left = scene.run(guard.ensure(seconds(10))).unwrap();
    assert_eq!(
        (left, scene.store.count(Op::KeepAlive)),
        (millis(10_500), 0)
    );
    let left = scene.run(guard.ensure(seconds(13))).unwrap();
    assert_eq!((left, scene.store.count(Op::KeepAlive)), (BELIEVED, 1));
    let refused = scene.run(guard.ensure(seconds(14))).unwrap_err();
    assert_eq!(refused.kind(), fencelock::ErrorKind::InvalidRequest);
    scene.pass(seconds(1));
    scene.store.always(Op::KeepAlive, Act::TIMEOUT);
    let failed = scene.run(guard.ensure(seconds(13))).unwrap_err();
    assert_eq!(failed.kind(), fencelock::ErrorKind::Unavailable);
    assert!(guard.is_held());
}

/// What the store did not renew with its session is renewed by itself.
#[test]
fn late_grant_is_renewed_by_itself() {
    let scene = Scene::new();
    let (late, other) = (scene.guard("late"), scene.guard("other"));
    scene.store.make_late(late.token(), seconds(8));
    scene.pass(seconds(60));
    assert!(late.is_held() && other.is_held());
    assert!(
        late.remaining() > seconds(7),
        "the renewal by itself counts"
    );
    assert_eq!(
        scene.store.count(Op::Extend),
        scene.store.count(Op::KeepAlive)
    );
}

/// Without that it ends by its own deadline, and alone; what the store still has is given back.
#[test]
fn late_grant_that_is_not_renewed_is_lost_alone() {
    let scene = Scene::new();
    let (late, other) = (scene.guard("late"), scene.guard("other"));
    scene.store.make_late(late.token(), seconds(4));
    scene.store.always(Op::Extend, Act::TIMEOUT);
    let lost = scene.run(late.lost());
    assert_eq!(lost.reason, LostReason::Unreachable);
    // Renewed at 5 s, with 4 s left, less the margin.
    assert_eq!(scene.world.elapsed(), millis(7_500));
    scene.pass(millis(1));
    assert_eq!(scene.store.holder("late"), None);
    scene.pass(seconds(60));
    assert!(other.is_held());
}

/// Nor if it is found gone.
#[test]
fn late_grant_that_is_gone_is_lost_definitely() {
    let scene = Scene::new();
    let (late, other) = (scene.guard("late"), scene.guard("other"));
    scene.store.make_late(late.token(), seconds(4));
    scene
        .store
        .next(Op::KeepAlive, [Act::LateReply(millis(10))]);
    scene.pass(millis(5_005));
    scene.store.revoke_now("late", "alice", "test");
    let lost = scene.run(late.lost());
    assert_eq!(lost.reason, LostReason::SessionClosed);
    assert!(other.is_held());
}

/// A grant whose answer took long is renewed at once: what is known of its life may be short.
#[test]
fn slow_grant_is_renewed_at_once() {
    let scene = Scene::new();
    let _first = scene.guard("first");
    scene.pass(millis(4_900));
    scene
        .store
        .next(Op::Insert, [Act::LateReply(millis(4_900))]);
    let guard = scene.guard("k");
    scene.pass(millis(1));
    assert_eq!(scene.store.count(Op::KeepAlive), 2);
    assert!(guard.remaining() > seconds(13));
}

/// A store too slow for what is asked is not asked for ever.
#[test]
fn ensure_gives_up_on_a_store_that_is_too_slow() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene
        .store
        .always(Op::KeepAlive, Act::LateReply(seconds(1)));
    scene.pass(seconds(1));
    let failed = scene.run(guard.ensure(seconds(13))).unwrap_err();
    assert_eq!(failed.kind(), fencelock::ErrorKind::Unavailable);
    assert_eq!(scene.store.count(Op::KeepAlive), 2);
    assert!(guard.is_held());
}

/// After a loss the session is closed, so that a renewal whose answer was lost does not keep the key;
/// and not before its own deadline, so that the margin is left to what is on its way to a resource.
#[test]
fn lost_session_is_closed_only_after_its_margin() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.always(Op::KeepAlive, Act::LoseReply);
    scene.run(guard.lost());
    assert_eq!(scene.world.elapsed(), BELIEVED);
    scene.pass(millis(1_400));
    assert_eq!(scene.store.holder("k"), Some(guard.token()));
    scene.pass(millis(200));
    assert_eq!(scene.store.count(Op::Close), 1);
    assert_eq!(scene.store.holder("k"), None);
}
