//! Waiting in line: places in the store's queue, and the lines of a client (K08, K13).

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::MetadataStore;
use fencelock::spi::{FencingToken, Payload};
use fencelock::{Backoff, Client, ErrorKind, ExponentialBackoff, Guard};
use futures_util::future::join_all;

use crate::common::{Act, Embedded, Op, Scene, acquired, is_ready, key, millis, seconds};

/// What stands in the store's queues.
fn places(embedded: &Embedded) -> Vec<String> {
    let residue = embedded.residue().into_iter();
    residue.filter(|key| key.contains("/wait/")).collect()
}

/// Acquires for somebody who notes the token, holds the lock for a moment and gives it back.
async fn pass(embedded: &Embedded, client: &Client, after: Duration) -> FencingToken {
    embedded.runtime.sleep(after).await;
    let guard = client.acquire("k").await.unwrap();
    let token = guard.token();
    embedded.runtime.sleep(millis(10)).await;
    guard.release().await.unwrap();
    token
}

fn rises(tokens: &[FencingToken]) -> bool {
    tokens.windows(2).all(|pair| pair[0] < pair[1])
}

#[test]
fn a_hundred_clients_are_served_in_the_order_of_their_places() {
    let embedded = Embedded::new();
    let holder = embedded.client("holder");
    let clients: Vec<_> = (0..100)
        .map(|at| embedded.client(&format!("waiter-{at}")))
        .collect();
    let held = embedded.run(acquired(&holder, "k"));
    let waits = clients.iter().zip(1..).map(|(client, at)| {
        let after = millis(at * 20);
        pass(&embedded, client, after)
    });
    let release = async {
        embedded.runtime.sleep(seconds(4)).await;
        assert_eq!(places(&embedded).len(), 100, "each has a place of its own");
        held.release().await.unwrap();
    };
    let (tokens, ()) = embedded.run(async { tokio::join!(join_all(waits), release) });
    assert!(rises(&tokens), "{tokens:?}");
    // The last is served by its wake-ups, and not by looking again.
    assert!(
        embedded.world.elapsed() < seconds(8),
        "{:?}",
        embedded.world.elapsed()
    );
}

/// B98: however many tasks of a client wait, there is one place, and they are served in turn.
#[test]
fn tasks_of_one_client_have_one_place_together() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("many"), embedded.client("other"));
    let held = embedded.run(acquired(&other, "k"));
    let waits = (1..=50).map(|at| pass(&embedded, &client, millis(at)));
    let release = async {
        embedded.runtime.sleep(seconds(3)).await;
        assert_eq!(places(&embedded).len(), 1, "{:?}", places(&embedded));
        held.release().await.unwrap();
    };
    let (tokens, ()) = embedded.run(async { tokio::join!(join_all(waits), release) });
    assert!(rises(&tokens), "{tokens:?}");
    embedded.pass(seconds(6));
    assert_eq!(embedded.residue(), [""; 0]);
}

#[test]
fn a_hand_over_inside_of_a_client_takes_two_writes() {
    let embedded = Embedded::new();
    let client = embedded.client("many");
    let held = embedded.run(acquired(&client, "k"));
    let before = embedded.server.revision();
    let waits = (1..=20).map(|at| pass(&embedded, &client, millis(at)));
    let release = async {
        embedded.runtime.sleep(millis(500)).await;
        held.release().await.unwrap();
    };
    embedded.run(async { tokio::join!(join_all(waits), release) });
    let writes = embedded.server.revision() - before;
    assert_eq!(writes, 1 + 20 * 2, "each is granted once and released once");
}

/// B101: a line of one client does not pass over those of other clients.
#[test]
fn a_line_does_not_pass_over_other_clients() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("many"), embedded.client("other"));
    let held = embedded.run(acquired(&client, "k"));
    let waits = (1..=5).map(|at| pass(&embedded, &client, millis(at)));
    let release = async {
        embedded.runtime.sleep(millis(500)).await;
        held.release().await.unwrap();
    };
    let others = pass(&embedded, &other, millis(100));
    let all = async { tokio::join!(join_all(waits), others, release) };
    let (tokens, others, ()) = embedded.run(all);
    assert!(rises(&tokens));
    assert!(
        others < tokens[0],
        "it had a place before the lock was free"
    );
}

/// B101: nor does one who only tries, however often, pass over those who wait in its own client.
#[test]
fn one_who_only_tries_does_not_pass_over_a_line() {
    let embedded = Embedded::new();
    let client = embedded.client("many");
    let held = embedded.run(acquired(&client, "k"));
    let waits = (1..=5).map(|at| pass(&embedded, &client, millis(at)));
    let tries = async {
        embedded.runtime.sleep(millis(100)).await;
        held.release().await.unwrap();
        let mut refused = 0;
        loop {
            if let Some(guard) = client.try_acquire("k").await.unwrap().guard() {
                return (guard.token(), refused);
            }
            refused += 1;
            embedded.runtime.sleep(millis(1)).await;
        }
    };
    let (tokens, (tried, refused)) = embedded.run(async { tokio::join!(join_all(waits), tries) });
    assert!(
        tokens.iter().all(|token| *token < tried),
        "{tokens:?} {tried}"
    );
    assert!(refused > 40, "{refused}");
}

/// B64, B65: a waiter whose session was ended takes a new place, without anybody else moving, and
/// is never handed a grant of the old one.
#[test]
fn a_waiter_whose_session_was_ended_takes_a_new_place() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("waiter"), embedded.client("other"));
    let held = embedded.run(acquired(&other, "k"));
    let waits = async { client.acquire("k").await.unwrap() };
    let revoke = async {
        embedded.runtime.sleep(seconds(1)).await;
        let [first] = &places(&embedded)[..] else {
            panic!("{:?}", places(&embedded));
        };
        let entries = embedded.server.entries().into_iter();
        let place = entries.filter(|entry| entry.key.starts_with(first.as_bytes()));
        let lease = place.filter_map(|entry| entry.lease).next_back().unwrap();
        embedded.server.lease_revoke(lease).await.unwrap();
        assert_eq!(places(&embedded), [""; 0]);
        embedded.runtime.sleep(seconds(4)).await;
        assert_eq!(places(&embedded).len(), 1, "it waits again");
        assert_ne!(&places(&embedded)[0], first);
        assert!(held.is_held());
        held.release().await.unwrap();
    };
    let (guard, ()) = embedded.run(async { tokio::join!(waits, revoke) });
    embedded.pass(seconds(20));
    guard.check().unwrap();
    assert_eq!(
        embedded.run(guard.release()).unwrap(),
        fencelock::Release::Released
    );
}

/// B47: one who has waited long enough leaves the line's place to the next.
#[test]
fn one_who_leaves_passes_the_place_on() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("many"), embedded.client("other"));
    let held = embedded.run(acquired(&other, "k"));
    let impatient = async { client.acquire("k").wait_at_most(seconds(1)).await };
    let patient = async {
        embedded.runtime.sleep(millis(500)).await;
        let before = places(&embedded);
        let guard = client.acquire("k").await.unwrap();
        (before, guard)
    };
    let release = async {
        embedded.runtime.sleep(seconds(2)).await;
        let still = places(&embedded);
        held.release().await.unwrap();
        still
    };
    let all = async { tokio::join!(impatient, patient, release) };
    let (impatient, (before, guard), after) = embedded.run(all);
    let timed_out = impatient.unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    assert_eq!(timed_out.holder().unwrap().owner.as_str(), "other");
    assert_eq!((before.len(), before), (1, after));
    guard.check().unwrap();
}

#[test]
fn each_grant_shows_what_its_own_wish_says() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("many"), embedded.client("other"));
    let held = embedded.run(acquired(&other, "k"));
    let show = async |text: &'static str| {
        let payload = Payload::new(text).unwrap();
        let guard = client.acquire("k").payload(payload).await.unwrap();
        let seen = other.admin().read("k").await.unwrap().holder.unwrap();
        assert_eq!(seen.payload.as_bytes(), text.as_bytes());
        assert_eq!(seen.token, guard.token());
        guard.release().await.unwrap();
    };
    let gone = async {
        let payload = Payload::new("gone").unwrap();
        let wait = client.acquire("k").payload(payload);
        wait.wait_at_most(millis(300)).await.map(drop).unwrap_err()
    };
    let release = async {
        embedded.runtime.sleep(seconds(1)).await;
        held.release().await.unwrap();
    };
    embedded.run(async { tokio::join!(gone, show("one"), show("two"), show("three"), release) });
}

/// A turn is taken in time though nobody polls the one who waits.
#[test]
fn a_turn_is_taken_though_its_future_is_not_polled() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("waiter"), embedded.client("other"));
    let held = embedded.run(acquired(&other, "k"));
    let mut waits = Box::pin(async { client.acquire("k").await.unwrap() });
    embedded.run(async {
        tokio::select! {
            biased;
            _ = &mut waits => panic!("it is held"),
            () = embedded.runtime.sleep(seconds(1)) => {}
        }
    });
    embedded.run(held.release()).unwrap();
    embedded.pass(seconds(20));
    let holder = embedded
        .run(other.admin().read("k"))
        .unwrap()
        .holder
        .unwrap();
    assert_eq!(holder.owner.as_str(), "waiter");
    let guard = embedded.run(waits);
    assert_eq!(guard.check().unwrap(), holder.token);
}

/// A guard that is on its way to one who leaves in that moment is given back.
#[test]
fn a_grant_for_one_who_has_just_left_goes_to_the_next() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("waiter"), embedded.client("other"));
    let held = embedded.run(acquired(&other, "k"));
    let mut first = Box::pin(async { client.acquire("k").await.unwrap() });
    embedded.run(async {
        tokio::select! {
            biased;
            _ = &mut first => panic!("it is held"),
            () = embedded.runtime.sleep(seconds(1)) => {}
        }
    });
    embedded.run(held.release()).unwrap();
    embedded.pass(seconds(1));
    drop(first);
    let guard = embedded.run(async { other.acquire("k").wait_at_most(seconds(1)).await });
    drop(guard.unwrap());
}

#[test]
fn shutdown_ends_every_wait() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("waiter"), embedded.client("other"));
    let _held = embedded.run(acquired(&other, "k"));
    let waits = (0..3).map(|_| async { client.acquire("k").await.unwrap_err() });
    let end = async {
        embedded.runtime.sleep(seconds(1)).await;
        client.clone().shutdown().await
    };
    let (errors, _) = embedded.run(async { tokio::join!(join_all(waits), end) });
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::ShuttingDown);
    }
    assert!(embedded.world.elapsed() < seconds(2));
    assert_eq!(places(&embedded), [""; 0]);
}

/// The same with a guard of its own in the way.
#[test]
fn shutdown_ends_a_wait_for_its_own_guard() {
    let embedded = Embedded::new();
    let client = embedded.client("waiter");
    let _held = embedded.run(acquired(&client, "k"));
    let waits = async { client.acquire("k").await.unwrap_err() };
    let end = async {
        embedded.runtime.sleep(millis(100)).await;
        client.clone().shutdown().await
    };
    let (error, _) = embedded.run(async { tokio::join!(waits, end) });
    assert_eq!(error.kind(), ErrorKind::ShuttingDown);
}

/// What is forgotten, held for long or revoked does not keep a line from the store: after a
/// look-again period it takes its place there.
#[test]
fn a_line_behind_its_own_client_takes_its_place_in_time() {
    let embedded = Embedded::new();
    let (client, other) = (embedded.client("waiter"), embedded.client("other"));
    let held = embedded.run(acquired(&client, "k"));
    let waits = async { client.acquire("k").await.unwrap() };
    let revoke = async {
        embedded.runtime.sleep(seconds(3)).await;
        assert_eq!(places(&embedded).len(), 1);
        let admin = other.admin();
        let target = fencelock::spi::RevokeTarget::Grant(held.token());
        let revoked = admin.revoke("k", target).reason("stuck").send().await;
        assert!(revoked.unwrap().revoked);
        embedded.runtime.now()
    };
    let (guard, revoked) = embedded.run(async { tokio::join!(waits, revoke) });
    let waited = embedded.runtime.now().saturating_since(revoked);
    assert!(waited < millis(100), "{waited:?}");
    assert!(guard.token() > held.token());
}

/// How long to pause after a failure is the application's to say.
#[test]
fn pauses_after_failures_are_those_of_the_backoff() {
    #[derive(Debug)]
    struct Growing;
    impl Backoff for Growing {
        fn pause(&self, failures: u32, _: u64) -> Duration {
            seconds(u64::from(failures))
        }
    }
    let scene = Scene::with(|builder| builder.backoff(Growing));
    scene.store.cut_off(&Act::Refuse(
        fencelock::spi::ErrorKind::NotLeader,
        fencelock::spi::Effect::None,
    ));
    scene.store.always(Op::Open, Act::Pass);
    let wait = async { scene.client.acquire("k").wait_at_most(millis(6500)).await };
    let timed_out = scene.run(wait).unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    let times = scene.store.times(Op::Insert);
    let pauses = times
        .windows(2)
        .map(|pair| pair[1].saturating_since(pair[0]));
    assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 3].map(seconds));
}

#[test]
fn a_look_again_period_out_of_range_is_refused() {
    for period in [Duration::ZERO, millis(2001)] {
        let scene = Scene::new();
        let builder = Client::builder(scene.store.clone()).runtime(Arc::clone(&scene.runtime));
        let refused = builder.look_again(period).build().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
        assert!(
            refused.to_string().contains("look-again period"),
            "{refused}"
        );
    }
    assert_eq!(ExponentialBackoff::default().longest, seconds(2));
}

/// B143 and re-entrancy: a task that waits for what it holds itself times out.
#[test]
fn one_who_waits_for_its_own_lock_times_out() {
    let scene = Scene::new();
    let guard: Guard = scene.guard("k");
    let wait = async { scene.client.acquire("k").wait_at_most(seconds(5)).await };
    let timed_out = scene.run(wait).unwrap_err();
    assert_eq!(timed_out.holder().unwrap().token, guard.token());
    assert!(guard.is_held());
    assert!(!is_ready(async { scene.client.acquire(key("k")).await }));
}
