//! What it costs to hand a lock over, on a simulated cluster in virtual time.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod common;
mod hand_over {
    pub(crate) mod counted;
    pub(crate) mod line;
}

use std::time::Duration;

use common::{Cluster, Node, granted, key, queued, seconds, simulate};
use etcd_kv::{LeaseId, MetadataStore, PutRequest};
use etcd_mock::MockStore;
use futures_util::future::join_all;
use hand_over::counted::{Calls, Counted, Watches};
use hand_over::line::{KEY, LOOK_AGAIN, Line, Person};
use lock_spi::{Grant, InsertOutcome, LockStore, Queue, SessionId};
use sim_runtime::Faulty;

const HOLD: Duration = Duration::from_millis(10);

type Way = Counted<MockStore>;

async fn node(cluster: &Cluster) -> Node<Way> {
    cluster.node_on(Counted::new(cluster.server.clone())).await
}

/// Somebody who holds the key and is counted by nobody.
async fn holder(cluster: &Cluster) -> (Node<Faulty<MockStore>>, Grant) {
    let node = cluster.node().await;
    let session = node.session().await;
    let (grant, _) = node.take(session, KEY).await;
    (node, grant)
}

async fn release<M: MetadataStore>(node: &Node<M>, grant: &Grant) {
    let ended = node.store.delete_if_owner(&grant.key, grant.token).await;
    assert!(ended.unwrap());
}

async fn join<M: MetadataStore>(
    node: &Node<M>,
    session: SessionId,
    count: usize,
) -> Vec<Person<M>> {
    let mut people = Vec::new();
    for _ in 0..count {
        people.push(Person::joins(node, session).await);
    }
    people
}

fn total(nodes: &[Node<Way>]) -> Calls {
    let zero = Calls {
        reads: 0,
        writes: 0,
        watches: 0,
    };
    let all = nodes.iter().map(|node| node.kv.calls());
    all.fold(zero, |sum, calls| Calls {
        reads: sum.reads + calls.reads,
        writes: sum.writes + calls.writes,
        watches: sum.watches + calls.watches,
    })
}

/// B98: one DELETE, the head's TAKE, and one look and one watch of who is the head after it; that
/// is all, with ten waiters and with a hundred, in one process and in four.
#[test]
fn a_hand_over_costs_three_calls_and_a_watch_however_many_wait() {
    for (processes, each) in [(1, 10), (1, 100), (4, 25)] {
        simulate(async |cluster| {
            let (first, held) = holder(&cluster).await;
            let mut nodes = Vec::new();
            for _ in 0..processes {
                let node = node(&cluster).await;
                let session = node.session().await;
                nodes.push((node, session));
            }
            // In turns, so that neighbours in line are of different processes.
            let mut people = Vec::new();
            for _ in 0..each {
                for (node, session) in &nodes {
                    people.push(Person::joins(node, *session).await);
                }
            }
            let (nodes, _): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
            let line = Line::of(&people, (LOOK_AGAIN, HOLD));
            cluster.sleep(Duration::from_millis(500)).await;
            let before = total(&nodes);
            release(&first, &held).await;
            line.served_in_order().await;
            let count = u64::try_from(people.len()).unwrap();
            let calls = total(&nodes).since(before);
            let expected = Calls {
                // The last one has nobody after it.
                reads: count - 1,
                watches: count - 1,
                writes: 2 * count,
            };
            match each {
                // Some came before their neighbours, and began with one further ahead.
                100 => assert!(
                    calls.writes == expected.writes && calls.reads <= expected.reads * 3 / 2,
                    "{calls:?}"
                ),
                _ => assert_eq!(calls, expected),
            }
            assert_eq!(cluster.server.open_streams(), 0);
            assert_eq!(cluster.names("wait/"), Vec::<String>::new());
            Ok(())
        });
    }
}

/// To begin to wait costs one look, since whoever took a place saw who was before it; nothing while
/// nothing happens; the session is watched once.
#[test]
fn a_thousand_waiters_share_what_they_can_and_leave_nothing() {
    simulate(async |cluster| {
        let (_first, _held) = holder(&cluster).await;
        let node = node(&cluster).await;
        let session = node.session().await;
        let people = join(&node, session, 1_000).await;
        let before = node.kv.calls();
        let waits = join_all(people.iter().map(Person::wait));
        let waiting = async {
            cluster.sleep(Duration::from_millis(500)).await;
            assert_eq!(
                cluster.server.open_streams(),
                1_001,
                "the session's and one each"
            );
            let begun = node.kv.calls();
            cluster.sleep(Duration::from_millis(500)).await;
            assert_eq!(node.kv.calls(), begun);
            begun
        };
        tokio::select! {
            biased;
            begun = waiting => {
                let begun = begun.since(before);
                assert_eq!((begun.reads, begun.writes), (1_000, 0));
                assert_eq!(begun.watches, 1_001, "the lock is one of them");
            }
            ended = waits => panic!("woken by nothing: {ended:?}"),
        }
        assert_eq!(cluster.server.open_streams(), 0);
        // Whoever waits again knows where it stands.
        let before = node.kv.calls();
        let again = node.runtime.timeout(seconds(1), people[500].wait()).await;
        assert!(again.is_err());
        let again = node.kv.calls().since(before);
        assert_eq!((again.reads, again.watches), (1, 2));
        Ok(())
    });
}

#[test]
fn who_is_told_that_it_is_its_turn_takes_the_lock_without_a_look() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let node = node(&cluster).await;
        let session = node.session().await;
        let people = join(&node, session, 2).await;
        // By the event, and by the look.
        let waits = node.runtime.run_to_end(people[0].wait());
        cluster.sleep(seconds(1)).await;
        release(&first, &held).await;
        waits.await.unwrap()?;
        let before = node.kv.calls();
        let held = granted(people[0].ask().await?);
        let calls = node.kv.calls().since(before);
        assert_eq!((calls.reads, calls.writes), (0, 1));
        release(&node, &held).await;
        people[1].wait().await?;
        let before = node.kv.calls();
        granted(people[1].ask().await?);
        let calls = node.kv.calls().since(before);
        assert_eq!((calls.reads, calls.writes), (0, 1));
        Ok(())
    });
}

/// What it was told is used once: when the lock is held again, it looks and waits.
#[test]
fn a_lock_that_was_seen_free_and_is_held_again_is_waited_for() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let node = node(&cluster).await;
        let session = node.session().await;
        let people = join(&node, session, 1).await;
        let waits = node.runtime.run_to_end(people[0].wait());
        cluster.sleep(seconds(1)).await;
        let entry = cluster.stored("lock/k").unwrap();
        release(&first, &held).await;
        waits.await.unwrap()?;
        let lease = LeaseId(held.session.as_i64());
        let forged = PutRequest::new(entry.key, entry.value).with_lease(lease);
        cluster.server.put(forged).await.unwrap();
        assert_eq!(queued(people[0].ask().await?).ahead, Some(0));
        let before = node.kv.calls();
        queued(people[0].ask().await?);
        let calls = node.kv.calls().since(before);
        assert_eq!((calls.reads, calls.writes), (1, 0));
        let mut waits = node.runtime.run_to_end(people[0].wait());
        assert!(node.runtime.timeout(seconds(1), &mut waits).await.is_err());
        Ok(())
    });
}

/// Whoever is before it leaves the line: it is not its turn, so it waits for the next one ahead.
#[test]
fn a_waiter_whose_predecessor_gives_up_waits_on() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let node = node(&cluster).await;
        let session = node.session().await;
        let people = join(&node, session, 5).await;
        let mut last = node.runtime.run_to_end(people[4].wait());
        cluster.sleep(seconds(1)).await;
        for leaves in [&people[3], &people[1], &people[2]] {
            let attempt = leaves.attempt;
            node.store.abandon(&key(KEY), session, attempt).await?;
            let woken = node.runtime.timeout(seconds(1), &mut last).await;
            assert!(woken.is_err(), "{woken:?}");
        }
        let before = node.kv.calls();
        node.store
            .abandon(&key(KEY), session, people[0].attempt)
            .await?;
        cluster.sleep(seconds(1)).await;
        let calls = node.kv.calls().since(before);
        assert_eq!((calls.reads, calls.watches), (1, 1));
        release(&first, &held).await;
        last.await.unwrap()?;
        granted(people[4].ask().await?);
        Ok(())
    });
}

/// A head that left while the lock is free makes its successor the head of a free lock.
#[test]
fn a_waiter_whose_predecessor_gives_up_its_turn_is_woken() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let node = node(&cluster).await;
        let session = node.session().await;
        let people = join(&node, session, 2).await;
        let waits = node.runtime.run_to_end(people[1].wait());
        cluster.sleep(seconds(1)).await;
        release(&first, &held).await;
        node.store
            .abandon(&key(KEY), session, people[0].attempt)
            .await?;
        waits.await.unwrap()?;
        granted(people[1].ask().await?);
        Ok(())
    });
}

/// B76, B77: the watches of all break, time and again: everybody looks and waits on, in order, and
/// nobody later than by looking again.
#[test]
fn a_line_whose_watches_break_served_in_order() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let node = cluster.node().await;
        let session = node.session().await;
        let mut people = Vec::new();
        for _ in 0..30 {
            people.push(Person::joins(&node, session).await);
        }
        let line = Line::of(&people, (LOOK_AGAIN, Duration::from_millis(100)));
        cluster.sleep(seconds(1)).await;
        let breaks = async {
            node.kv.faults().reset_streams();
            cluster.sleep(Duration::from_millis(30)).await;
            release(&first, &held).await;
            loop {
                cluster.sleep(Duration::from_millis(70)).await;
                node.kv.faults().reset_streams();
            }
        };
        let begun = node.runtime.now();
        tokio::select! {
            biased;
            () = line.served_in_order() => {}
            () = breaks => {}
        }
        let took = node.runtime.now().saturating_since(begun);
        assert!(took < seconds(3) + LOOK_AGAIN, "{took:?}");
        assert_eq!(cluster.server.open_streams(), 0);
        Ok(())
    });
}

/// B73: what ends while the watch of it is still being begun is seen by the look after that.
#[test]
fn a_release_before_the_watch_stands_is_not_missed() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let delay = Duration::from_millis(300);
        let late = Watches::Late(cluster.runtime.clone(), delay);
        let way = Counted::with(late, cluster.server.clone());
        let node = cluster.node_on(way).await;
        let session = node.session().await;
        let people = join(&node, session, 1).await;
        let mut waits = node.runtime.run_to_end(people[0].wait());
        cluster.sleep(delay / 2).await;
        release(&first, &held).await;
        let woken = node.runtime.timeout(delay, &mut waits).await;
        woken.expect("it is woken").unwrap()?;
        granted(people[0].ask().await?);
        Ok(())
    });
}

/// B74: no watch tells anything: by looking again everybody has a turn all the same, in order.
#[test]
fn a_line_whose_watches_tell_nothing_lives_on_looking_again() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let way = Counted::with(Watches::Deaf, cluster.server.clone());
        let node = cluster.node_on(way).await;
        let session = node.session().await;
        let people = join(&node, session, 5).await;
        let line = Line::of(&people, (LOOK_AGAIN, HOLD));
        release(&first, &held).await;
        let served = line.served_in_order();
        let in_time = node.runtime.timeout(5 * (LOOK_AGAIN + HOLD), served).await;
        in_time.expect("each by its next look");
        Ok(())
    });
}

/// B65: its own session's end wakes each of those who share the watch of it.
#[test]
fn the_end_of_their_session_wakes_all_who_wait_under_it() {
    simulate(async |cluster| {
        let (_first, _held) = holder(&cluster).await;
        let node = node(&cluster).await;
        let (ends, stays) = (node.session().await, node.session().await);
        let under_one = join(&node, ends, 10).await;
        let under_other = join(&node, stays, 1).await;
        let waits = under_one.iter().map(Person::wait);
        let waits = node.runtime.run_to_end(join_all(waits));
        let mut other = node.runtime.run_to_end(under_other[0].wait());
        cluster.sleep(seconds(1)).await;
        let lease = LeaseId(ends.as_i64());
        cluster.server.lease_revoke(lease).await.unwrap();
        for woken in waits.await.unwrap() {
            woken?;
        }
        assert!(node.runtime.timeout(seconds(1), &mut other).await.is_err());
        let outcome = under_other[0].ask().await?;
        assert!(matches!(outcome, InsertOutcome::Queued(_)), "{outcome:?}");
        Ok(())
    });
}

/// One who has no place shares the watch of the lock with the first in line.
#[test]
fn whoever_waits_for_the_lock_shares_one_watch_of_it() {
    simulate(async |cluster| {
        let (first, held) = holder(&cluster).await;
        let node = node(&cluster).await;
        let session = node.session().await;
        let mut waits = Vec::new();
        for _ in 0..50 {
            let attempt = node.attempt();
            let refused = node.insert(session, KEY, attempt, Queue::Never).await?;
            assert!(matches!(refused, InsertOutcome::Held(Some(_))));
            let store = node.store.clone();
            let request = lock_spi::WaitRequest {
                key: key(KEY),
                session,
                attempt,
                place: None,
            };
            waits.push(async move { store.await_release(request).await });
        }
        let waits = node.runtime.run_to_end(join_all(waits));
        cluster.sleep(seconds(1)).await;
        assert_eq!(cluster.server.open_streams(), 2, "the lock and the session");
        release(&first, &held).await;
        for woken in waits.await.unwrap() {
            woken?;
        }
        assert_eq!(cluster.server.open_streams(), 0);
        Ok(())
    });
}
