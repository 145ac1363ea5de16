//! Guards on a real server that dies, falls silent, forgets, or is meddled with.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fencelock::{Client, ErrorKind, Guard, LostReason, Release};
use lock_spi::{Instant, Runtime, TokioRuntime, Ttl};
use test_servers::{Cut, Direction, Etcd, Proxy};

/// For tests that do not harm it; each has a namespace of its own.
static SHARED: LazyLock<Etcd> = LazyLock::new(|| Etcd::start().expect("a server of etcd"));

/// Far more than anything here takes, for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::current())
}

fn now() -> Instant {
    runtime().now()
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn endpoint(etcd: &Etcd) -> String {
    etcd.endpoints().remove(0)
}

async fn connect(endpoint: &str, parameters: &str) -> Client {
    let client = Client::connect(&format!("etcd://{endpoint}?{parameters}")).await;
    client.expect("the server answers")
}

/// A client behind a proxy, and one past it.
async fn both(namespace: &str, ttl: u64) -> (Proxy, Client, Client) {
    let proxy = Proxy::to(&endpoint(&SHARED)).unwrap();
    let settings = |owner| format!("namespace={namespace}&owner={owner}&ttl={ttl}s");
    let client = connect(&proxy.endpoint(), &settings("a")).await;
    let other = connect(&endpoint(&SHARED), &settings("b")).await;
    (proxy, client, other)
}

async fn taken(client: &Client, key: &str) -> Guard {
    let guard = client.acquire(key).wait_at_most(PATIENCE).await;
    guard.expect("it is granted")
}

/// Waits until the guard's deadline has moved: a renewal was confirmed.
async fn renewed(guard: &Guard) {
    let (runtime, deadline) = (runtime(), now() + guard.remaining());
    while now() + guard.remaining() < deadline + seconds(1) {
        assert!(guard.is_held(), "{:?}", guard.check());
        runtime.sleep(Duration::from_millis(20)).await;
    }
}

/// B19: the server dies and comes back within the ttl: calls fail meanwhile, nothing is lost, and the
/// same client goes on.
#[tokio::test]
async fn a_server_that_restarts_costs_no_lock() {
    let mut etcd = Etcd::start().unwrap();
    let client = connect(&endpoint(&etcd), "ttl=60s").await;
    let (guard, leaving) = (taken(&client, "k").await, taken(&client, "leaving").await);
    etcd.kill(0).unwrap();
    for _ in 0..2 {
        let refused = client.try_acquire("other").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        let read = client.admin().read("k").await.unwrap_err();
        assert_eq!(read.kind(), ErrorKind::Unavailable, "{read}");
    }
    let unsettled = leaving.release().await.unwrap_err();
    assert_eq!(unsettled.kind(), ErrorKind::Unavailable, "{unsettled}");
    let waited = client.acquire("other").wait_at_most(seconds(1)).await;
    let waited = waited.unwrap_err();
    assert_eq!(waited.kind(), ErrorKind::TimedOut);
    assert!(waited.holder().is_none(), "nobody was seen: {waited}");
    guard.check().expect("it is not lost");
    etcd.restart(0).unwrap();
    // What was given back in vain is given back now.
    drop((
        taken(&client, "other").await,
        taken(&client, "leaving").await,
    ));
    while guard.ensure(seconds(50)).await.is_err() {
        guard.check().expect("it is not lost");
    }
    assert_eq!(guard.release().await.unwrap(), Release::Released);
    client.shutdown().await;
}

/// B11: cut off by a way that swallows everything, a guard is lost by its own deadline, for a reason
/// that claims no more than is known, and before anybody else has the lock.
#[tokio::test]
async fn who_is_cut_off_believes_no_longer_than_it_holds() {
    let (proxy, client, other) = both("silent", 6).await;
    let guard = taken(&client, "k").await;
    renewed(&guard).await;
    let cut_at = now();
    proxy.swallow(Direction::ToServer);
    let lost = async {
        let lost = guard.lost().await;
        (now(), lost)
    };
    let next = async {
        let next = taken(&other, "k").await;
        // Judged by the clock, however late anybody is woken.
        assert!(!guard.is_held(), "two hold it");
        next
    };
    let ((lost_at, lost), next) = tokio::join!(lost, next);
    assert_eq!(lost.reason, LostReason::Unreachable);
    assert!(!lost.reason.is_definite());
    assert!(lost_at.saturating_since(cut_at) < seconds(6) + seconds(4));
    assert!(next.token() > guard.token());
    proxy.heal();
    assert_eq!(guard.release().await.unwrap(), Release::AlreadyGone);
    next.check().expect("nobody touched it");
}

/// B19, B76: the connections of a client die unnoticed while new ones would work. Neither its locks
/// are lost nor do its waiters sleep until pings find that out.
#[tokio::test]
async fn connections_that_died_unnoticed_cost_no_lock_and_no_wait() {
    let (proxy, client, other) = both("unnoticed", 8).await;
    let (guard, held) = (taken(&client, "own").await, taken(&other, "k").await);
    let acquire = async { taken(&client, "k").await };
    let cut = async {
        runtime().sleep(Duration::from_millis(500)).await;
        proxy.mute();
        held.release().await.unwrap();
        now()
    };
    let (waiter, released_at) = tokio::join!(acquire, cut);
    assert!(now().saturating_since(released_at) < seconds(12));
    renewed(&guard).await;
    waiter.check().expect("it is held");
    // Again, with nobody asking but the renewals.
    proxy.mute();
    renewed(&guard).await;
    assert_eq!(guard.release().await.unwrap(), Release::Released);
}

/// B19: answers that come later than anybody waits for them, for a while.
#[tokio::test]
async fn late_answers_cost_no_lock() {
    let (proxy, client, _) = both("late", 6).await;
    let guard = taken(&client, "k").await;
    proxy.delay(Direction::ToClient, Duration::from_millis(1_500));
    runtime().sleep(Duration::from_millis(2_500)).await;
    proxy.heal();
    renewed(&guard).await;
    taken(&client, "other").await.release().await.unwrap();
    assert_eq!(guard.release().await.unwrap(), Release::Released);
}

/// B41: in whatever order client and guard are dropped, and whether or not the server can be reached,
/// renewals end and the key is free.
#[tokio::test]
async fn client_and_guard_are_dropped_in_any_order_and_the_key_is_free() {
    type Order = fn(Client, Guard);
    let orders: [(&str, Order); 4] = [
        ("client", |client, guard| {
            drop(client);
            std::mem::forget(guard);
        }),
        ("client-guard", |client, guard| {
            drop(client);
            drop(guard);
        }),
        ("guard-client", |client, guard| {
            drop(guard);
            drop(client);
        }),
        ("guard", |client, guard| {
            drop(guard);
            std::mem::forget(client);
        }),
    ];
    let cases = [true, false].map(|reachable| orders.map(|order| (reachable, order)));
    let told = cases
        .into_iter()
        .flatten()
        .map(async |(reachable, (name, order))| {
            let (proxy, client, other) = both(&format!("drops-{name}-{reachable}"), 6).await;
            let guard = taken(&client, "k").await;
            let token = guard.token();
            renewed(&guard).await;
            if !reachable {
                proxy.swallow(Direction::ToServer);
            }
            order(client, guard);
            let next = taken(&other, "k").await;
            assert!(next.token() > token, "{name}");
            next.release().await.unwrap();
            other.shutdown().await;
        });
    futures_util::future::join_all(told).await;
}

/// B43, B59: a release that met no server is no release yet; once the server can be reached again it
/// is done, and whoever came next is left alone.
#[tokio::test]
async fn a_release_that_met_nobody_is_made_up_for() {
    let (proxy, client, other) = both("made-up", 60).await;
    let (guard, kept) = (taken(&client, "k").await, taken(&client, "kept").await);
    let token = guard.token();
    proxy.swallow(Direction::ToServer);
    let unsettled = guard.release().await.unwrap_err();
    assert_eq!(unsettled.kind(), ErrorKind::Unavailable);
    let held = other.try_acquire("k").await.unwrap();
    assert!(held.guard().is_none(), "it stands");
    proxy.heal();
    let next = taken(&other, "k").await;
    assert!(next.token() > token);
    while kept.ensure(seconds(52)).await.is_err() {
        kept.check().expect("it is not lost");
    }
    let info = other.admin().read("k").await.unwrap();
    assert_eq!(info.holder.map(|holder| holder.token), Some(next.token()));
    next.check().expect("nobody touched it");
}

/// B01, B59: the answer to a release is lost and somebody else takes the lock at once: the repeat
/// ends nothing more, and says what the first one did.
#[tokio::test]
async fn a_release_whose_answer_was_lost_was_a_release() {
    for (name, cut) in [("after", Cut::AfterRequest), ("answer", Cut::SwallowAnswer)] {
        let (proxy, client, other) = both(&format!("release-{name}"), 60).await;
        let guard = taken(&client, "k").await;
        let trap = proxy.arm("lock/k", cut);
        let (told, next) = tokio::join!(guard.release(), taken(&other, "k"));
        assert!(trap.has_sprung());
        proxy.heal();
        match told {
            Ok(release) => assert_eq!(release, Release::Released),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        }
        // The repeats have all been made by the time when another release was answered.
        taken(&client, "later").await.release().await.unwrap();
        let info = other.admin().read("k").await.unwrap();
        assert_eq!(info.holder.map(|holder| holder.token), Some(next.token()));
    }
}

/// The ids of the leases by which an owner keeps sessions.
fn leases_of(etcd: &Etcd, namespace: &str, owner: &str) -> Vec<String> {
    let below = format!("/dlock/{namespace}/session/");
    let stored = etcd.ctl(&["get", "--prefix", &below]).unwrap();
    let lines: Vec<_> = stored.lines().collect();
    let of_owner = |pair: &&[&str]| pair[1].contains(&format!(r#""owner":"{owner}""#));
    let sessions = lines.chunks_exact(2).filter(of_owner);
    sessions
        .map(|pair| pair[0][below.len()..].to_owned())
        .collect()
}

/// B55, B64, B65: an administrator ends the session of a waiter: it waits on under a new one, and in
/// the end one of them has the lock. B20: the holder whose session is ended loses its lock at once.
#[tokio::test]
async fn a_session_that_is_ended_from_outside_costs_a_holder_its_lock_and_a_waiter_nothing() {
    let (_proxy, client, other) = both("ended", 15).await;
    let holder = taken(&other, "k").await;
    let revoke = |owner| {
        let leases = leases_of(&SHARED, "ended", owner);
        for lease in &leases {
            SHARED.ctl(&["lease", "revoke", lease]).unwrap();
        }
        leases
    };
    let waits = async { taken(&client, "k").await };
    let meddle = async {
        while leases_of(&SHARED, "ended", "a").is_empty() {
            runtime().sleep(Duration::from_millis(50)).await;
        }
        let ended = revoke("a");
        // Long before the holder leaves, the waiter has another session.
        loop {
            let leases = leases_of(&SHARED, "ended", "a");
            if leases.iter().any(|lease| !ended.contains(lease)) {
                break;
            }
            runtime().sleep(Duration::from_millis(50)).await;
        }
        holder.check().expect("the holder is still there");
        revoke("b");
        holder.lost().await
    };
    let (next, lost) = tokio::join!(waits, meddle);
    assert_eq!(lost.reason, LostReason::SessionClosed);
    assert!(next.token() > holder.token());
    next.check().expect("it is held");
}

/// B82: the server forgets its tokens between acquire and release: the client gets new ones, and
/// nobody notices. A user who is gone is told so, and nothing is tried for ever.
#[tokio::test]
async fn a_forgotten_token_is_renewed_and_a_deleted_user_is_told() {
    let mut etcd = Etcd::start().unwrap();
    etcd.limit_to("locks", "secret", "/dlock/").unwrap();
    let host = endpoint(&etcd);
    let client = connect(&format!("locks:secret@{host}"), "ttl=60s").await;
    let guard = taken(&client, "k").await;
    etcd.kill(0).unwrap();
    etcd.restart(0).unwrap();
    let other = taken(&client, "other").await;
    while guard.ensure(seconds(50)).await.is_err() {
        guard.check().expect("it is not lost");
    }
    assert_eq!(guard.release().await.unwrap(), Release::Released);

    let wrong = Client::connect(&format!("etcd://locks:wrong@{host}")).await;
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Denied);
    etcd.ctl(&["user", "delete", "locks"]).unwrap();
    etcd.kill(0).unwrap();
    etcd.restart(0).unwrap();
    let refused = runtime()
        .timeout(PATIENCE, client.acquire("k").into_future())
        .await;
    assert_eq!(
        refused.expect("in time").unwrap_err().kind(),
        ErrorKind::Denied
    );
    drop(other);
}

/// B157: a lock of a short ttl is free soon after its client is cut off, whatever else that client
/// holds for long. B140: it excludes the other tasks of its own client.
#[tokio::test]
async fn each_ttl_ends_by_itself() {
    let (proxy, client, other) = both("ttls", 900).await;
    let long = taken(&client, "long").await;
    let brief = client
        .acquire("brief")
        .ttl(Ttl::from_secs(6).unwrap())
        .await
        .unwrap();
    assert!(client.try_acquire("brief").await.unwrap().guard().is_none());
    renewed(&brief).await;
    proxy.swallow(Direction::ToServer);
    let next = taken(&other, "brief").await;
    assert!(next.token() > brief.token());
    assert!(!brief.is_held());
    assert!(other.try_acquire("long").await.unwrap().guard().is_none());
    long.check().expect("its time is not over");
    proxy.heal();
    long.release().await.unwrap();
}
