//! The client over the embedded store.

use fencelock::spi::RevokeTarget;
use fencelock::{Attempt, LostReason, Release};
use futures_util::TryStreamExt;
use sim_runtime::{Faulty, Weather};

use crate::common::{Embedded, acquired, is_free, millis, seconds, ttl};

#[test]
fn lock_goes_from_one_client_to_the_next_with_a_higher_token() {
    let scene = Embedded::new();
    let (a, b) = (scene.client("a"), scene.client("b"));
    let first = scene.run(acquired(&a, "k"));
    let Attempt::Held(holder) = scene.run(b.try_acquire("k")).unwrap() else {
        panic!("two hold it");
    };
    let holder = holder.unwrap();
    assert_eq!((holder.token, holder.owner.as_str()), (first.token(), "a"));
    let token = first.token();
    assert_eq!(scene.run(first.release()).unwrap(), Release::Released);
    let second = scene.run(acquired(&b, "k"));
    assert!(second.token() > token);
}

#[test]
fn lock_is_kept_for_as_long_as_its_guard_lives() {
    let scene = Embedded::new();
    let (a, b) = (scene.client("a"), scene.client("b"));
    let guard = scene.run(acquired(&a, "k"));
    scene.pass(seconds(300));
    assert!(guard.is_held());
    assert!(!scene.run(is_free(&b, "k")));
    drop(guard);
    scene.pass(seconds(6));
    assert!(scene.run(is_free(&b, "k")));
    scene.run(async { tokio::join!(a.shutdown(), b.shutdown()) });
    assert_eq!(scene.residue(), [""; 0]);
}

/// A guard got while a renewal is under way lives for as long as its session, whether or not that
/// renewal knows of it.
#[test]
fn grant_made_during_a_slow_renewal_lives_on_with_its_session() {
    let slow = Weather {
        delay: millis(20)..millis(21),
        ..Weather::calm()
    };
    let mut made = 0;
    for held_up in (3_000..4_450).step_by(10) {
        let scene = Embedded::new();
        let network = Faulty::new(scene.server.clone(), scene.world.runtime("a"), slow.clone());
        let faults = network.faults();
        let client = scene.client_over(network, "a", |builder| builder.ttl(ttl(5)));
        scene.run(async {
            let first = acquired(&client, "first").await;
            faults.hold_requests();
            scene.runtime.sleep(millis(held_up)).await;
            faults.release_requests();
            let Ok(attempt) = client.try_acquire("second").await else {
                return;
            };
            let second = attempt.guard().unwrap();
            made += 1;
            scene.runtime.sleep(seconds(1)).await;
            if first.is_held() {
                assert_eq!(second.check(), Ok(second.token()), "held up {held_up} ms");
            }
        });
    }
    assert!(made > 100, "{made}");
}

/// B29, B116: a client that stops is lost by its deadline; the next gets the key within the ttl.
#[test]
fn waiter_is_granted_when_the_holder_is_gone() {
    let scene = Embedded::new();
    let (a, b) = (scene.client("a"), scene.client("b"));
    let guard = scene.run(acquired(&a, "k"));
    let token = guard.token();
    std::mem::forget(guard);
    drop(a);
    let next = scene.run(async { b.acquire("k").await }).unwrap();
    assert!(next.token() > token);
    assert!(scene.world.elapsed() <= seconds(17));
}

/// B13, B31: a revoke reaches the holder with its reason, and the next token is above the floor.
#[test]
fn revoke_reaches_the_holder() {
    let scene = Embedded::new();
    let (a, b) = (scene.client("a"), scene.client("b"));
    let guard = scene.run(acquired(&a, "k"));
    let admin = b.admin();
    let holder = scene.run(admin.read("k")).unwrap().holder.unwrap();
    let revoke = admin.revoke("k", RevokeTarget::Grant(holder.token));
    let revoke = revoke.by("alice").reason("stuck since 03:00");
    let outcome = scene.run(revoke.clone().send()).unwrap();
    assert!(outcome.revoked);
    assert_eq!(
        scene.run(revoke.send()).unwrap(),
        outcome,
        "sent again it is the same"
    );
    let lost = scene.run(guard.lost());
    let LostReason::Revoked { by, reason } = &lost.reason else {
        panic!("{lost}");
    };
    assert_eq!(
        (by.as_str(), reason.as_str()),
        ("alice", "stuck since 03:00")
    );
    let next = scene.run(acquired(&b, "k"));
    assert!(Some(next.token()) > outcome.new_token_floor);
    let records: Vec<_> = scene
        .run(admin.revocations("k").unwrap().try_collect())
        .unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].outcome, outcome);
}

#[test]
fn admin_lists_every_lock_over_all_pages() {
    let scene = Embedded::new();
    let a = scene.client("a");
    let guards: Vec<_> = (0..250)
        .map(|i| scene.run(acquired(&a, &format!("orders/{i:03}"))))
        .collect();
    let _other = scene.run(acquired(&a, "other"));
    let prefix = fencelock::spi::KeyPrefix::new("orders/").unwrap();
    let listed: Vec<_> = scene.run(a.admin().list(&prefix).try_collect()).unwrap();
    let mut keys: Vec<_> = listed.into_iter().map(|info| info.key).collect();
    keys.sort();
    let held: Vec<_> = guards.iter().map(|guard| guard.key().clone()).collect();
    assert_eq!(keys, held);
}

/// B157 settled: sessions of several ttls do not keep each other.
#[test]
fn each_ttl_is_its_own() {
    let scene = Embedded::new();
    let (a, b) = (scene.client("a"), scene.client("b"));
    let (short, long) = scene.run(async {
        let short = a.acquire("short").ttl(ttl(2)).await.unwrap();
        let long = a.acquire("long").ttl(ttl(600)).await.unwrap();
        (short, long)
    });
    std::mem::forget(short);
    std::mem::forget(long);
    let begun = scene.world.elapsed();
    drop(a);
    drop(scene.run(async { b.acquire("short").await }).unwrap());
    assert!(scene.world.elapsed() - begun <= seconds(3));
}
