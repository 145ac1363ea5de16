//! What it costs to hand a lock over on a real server, and how a line fares when its one stream of
//! watches breaks.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod common;
mod hand_over {
    pub(crate) mod counted;
    pub(crate) mod line;
    pub(crate) mod streams;
}
mod live {
    pub(crate) mod until;
    pub(crate) mod ways;
}

use std::time::Duration;

use common::{Node, granted, seconds};
use etcd_kv::{DeleteRequest, KeyRange, LeaseId, MetadataStore, PutRequest, WatchRequest};
use futures_util::StreamExt;
use hand_over::counted::{Calls, Counted};
use hand_over::line::{KEY, LOOK_AGAIN, Line, Person};
use hand_over::streams::Streams;
use live::until::until;
use live::ways::{config, connect, fresh_namespace, runtime};
use lock_spi::{Grant, LockStore, Namespace, OpenSessionRequest, Owner, Queue, SessionId, Ttl};
use store_etcd::{EtcdClient, EtcdConfig, EtcdLockStore};
use test_servers::{Direction, Etcd, Proxy};

const HOLD: Duration = Duration::from_millis(3);
/// Long enough for everybody's watch to stand.
const SETTLED: Duration = Duration::from_secs(1);

/// A store object that nobody counts, or one that is counted.
async fn node<M: MetadataStore + Clone>(kv: M, namespace: &Namespace) -> Node<M> {
    let runtime = runtime();
    let config = EtcdConfig::new(namespace.clone());
    let store = EtcdLockStore::open(kv.clone(), runtime.clone(), config).await;
    let store = store.unwrap();
    Node { store, kv, runtime }
}

/// One that outlives the test without a renewal.
async fn session<M: MetadataStore>(node: &Node<M>) -> SessionId {
    let request = OpenSessionRequest {
        session: SessionId::random(&*node.runtime),
        owner: Owner::default(),
        ttl: Ttl::new(Duration::from_secs(120)).unwrap(),
    };
    node.store.open_session(request).await.unwrap().session
}

async fn take<M: MetadataStore>(node: &Node<M>) -> Grant {
    let (session, attempt) = (session(node).await, node.attempt());
    granted(
        node.insert(session, KEY, attempt, Queue::Never)
            .await
            .unwrap(),
    )
}

async fn release<M: MetadataStore>(node: &Node<M>, grant: &Grant) {
    let ended = node.store.delete_if_owner(&grant.key, grant.token).await;
    assert!(ended.unwrap());
}

async fn join<M: MetadataStore>(node: &Node<M>, count: usize) -> Vec<Person<M>> {
    let session = session(node).await;
    let mut people = Vec::new();
    for _ in 0..count {
        people.push(Person::joins(node, session).await);
    }
    people
}

/// B98: a hundred in line on one stream: in order, at three calls and one watch per hand-over.
#[tokio::test]
async fn a_hundred_are_served_in_order_at_three_calls_each() {
    let etcd = Etcd::start().unwrap();
    let (endpoint, namespace) = (&etcd.endpoints()[0], fresh_namespace());
    let first = node(connect(endpoint).await, &namespace).await;
    let held = take(&first).await;
    let node = node(Counted::new(connect(endpoint).await), &namespace).await;
    let streams = Streams::of(endpoint);
    let people = join(&node, 100).await;
    let line = Line::of(&people, (seconds(60), HOLD));
    node.runtime.sleep(SETTLED).await;
    assert_eq!((streams.open(), streams.opened()), (1, 1));
    let before = node.kv.calls();
    let begun = node.runtime.now();
    release(&first, &held).await;
    line.served_in_order().await;
    let took = node.runtime.now().saturating_since(begun);
    let calls = node.kv.calls().since(before);
    println!("{calls:?} in {took:?}");
    let expected = Calls {
        // The last one has nobody after it.
        reads: 99,
        writes: 200,
        watches: 99,
    };
    assert_eq!(calls, expected);
    assert_eq!(streams.opened(), 1);
    until("the stream is closed", async || {
        (streams.open() == 0).then_some(())
    })
    .await;
}

/// B76, B77: the one stream is reset, and dies unnoticed: the line goes on in order, over one new
/// stream and not one per waiter.
#[tokio::test]
async fn a_line_whose_stream_is_cut_goes_on_over_one_new_stream() {
    let etcd = Etcd::start().unwrap();
    for cut in [Proxy::reset, Proxy::mute] {
        let endpoint = &etcd.endpoints()[0];
        let (proxy, namespace) = (Proxy::to(endpoint).unwrap(), fresh_namespace());
        let first = node(connect(endpoint).await, &namespace).await;
        let held = take(&first).await;
        let node = node(connect(&proxy.endpoint()).await, &namespace).await;
        let streams = Streams::of(endpoint);
        let before = streams.opened();
        let people = join(&node, 50).await;
        let line = Line::of(&people, (LOOK_AGAIN, HOLD));
        node.runtime.sleep(SETTLED).await;
        assert_eq!(streams.opened() - before, 1);
        cut(&proxy);
        // Nobody is woken by the release: some of its way is gone.
        release(&first, &held).await;
        let cut_at = node.runtime.now();
        let order = std::sync::Arc::clone(&line.order);
        until("the first one's turn", async || {
            (!order.lock().unwrap().is_empty()).then_some(())
        })
        .await;
        let took = node.runtime.now().saturating_since(cut_at);
        // It looks again, and its connection is given up after as long as a call may take.
        assert!(took < LOOK_AGAIN + seconds(3), "{took:?}");
        line.served_in_order().await;
        assert!(
            streams.opened() - before <= 3,
            "{}",
            streams.opened() - before
        );
    }
}

/// B77: the member that had the stream is killed: all go on at another one, in order.
#[tokio::test]
async fn a_line_outlives_the_member_of_its_stream() {
    let mut etcd = Etcd::cluster(3).unwrap();
    let (endpoints, namespace) = (etcd.endpoints(), fresh_namespace());
    let anywhere = async || connect(&endpoints.join(",")).await;
    let node = node(anywhere().await, &namespace).await;
    let held = take(&node).await;
    let people = join(&node, 30).await;
    let line = Line::of(&people, (LOOK_AGAIN, HOLD));
    node.runtime.sleep(SETTLED).await;
    let of = |endpoint: &String| Streams::of(endpoint).open();
    let watched: Vec<_> = endpoints.iter().map(of).collect();
    let member = watched.iter().position(|open| *open == 1).unwrap();
    assert_eq!(watched.iter().sum::<u64>(), 1, "{watched:?}");
    etcd.kill(member).unwrap();
    let release = async || node.store.delete_if_owner(&held.key, held.token).await.ok();
    until("a release", release).await;
    line.served_in_order().await;
    let others = endpoints.iter().enumerate();
    let others = others.filter(|(index, _)| *index != member);
    let opened: u64 = others
        .map(|(_, endpoint)| Streams::of(endpoint).opened())
        .sum();
    assert!(opened <= 2, "{opened} streams");
}

/// A watch that nobody reads holds up neither the others on its stream nor the connection, of which
/// it would be the end after some thousand events.
#[tokio::test]
async fn a_watch_that_nobody_reads_holds_up_nobody() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd.endpoints()[0]).await;
    let streams = Streams::of(&etcd.endpoints()[0]);
    let watch = async |name| {
        let request = WatchRequest::new(KeyRange::prefix(name));
        client.watch(request).await.unwrap()
    };
    let mut slow = watch("many/").await;
    let mut quick = watch("few").await;
    let many = 20_000;
    let puts =
        (0..many).map(|number| client.put(PutRequest::new(format!("many/{}", number % 7), "")));
    let mut puts = futures_util::stream::iter(puts).buffer_unordered(64);
    while let Some(put) = puts.next().await {
        put.unwrap();
    }
    client.put(PutRequest::new("few", "")).await.unwrap();
    let event = runtime().timeout(seconds(5), quick.next()).await;
    assert_eq!(event.unwrap().unwrap().unwrap().events.len(), 1);
    let mut read = 0;
    while read < many {
        read += slow.next().await.unwrap().unwrap().events.len();
    }
    assert_eq!((read, streams.opened()), (many, 1));
}

/// Watches come and go on one stream: each is told what happened while it stood, and the server is
/// left with none of those that are gone.
#[tokio::test]
async fn a_watch_that_is_dropped_is_removed_from_the_stream() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd.endpoints()[0]).await;
    let streams = Streams::of(&etcd.endpoints()[0]);
    let request = |name: String| WatchRequest::new(KeyRange::key(name));
    let mut kept = client.watch(request("kept".into())).await.unwrap();
    for round in 0..3 {
        let begun = (0..200).map(|number| client.watch(request(format!("k/{number}"))));
        let mut watches: Vec<_> = futures_util::future::try_join_all(begun).await.unwrap();
        assert_eq!(streams.watchers(), 201, "round {round}");
        client.put(PutRequest::new("k/7", "")).await.unwrap();
        let event = watches[7].next().await.unwrap().unwrap();
        assert_eq!(event.events[0].kv.key, "k/7");
        drop(watches);
        // Asked for and given up at once.
        for number in 0..50 {
            let begun = client.watch(request(format!("k/{number}")));
            let given_up = runtime().timeout(Duration::ZERO, begun).await;
            assert!(given_up.is_err(), "not within no time");
        }
        until("they are removed", async || {
            (streams.watchers() == 1).then_some(())
        })
        .await;
    }
    client.put(PutRequest::new("kept", "")).await.unwrap();
    assert_eq!(kept.next().await.unwrap().unwrap().events.len(), 1);
    assert_eq!((streams.open(), streams.opened()), (1, 1));
}

/// B80: one lease takes all of them along: everybody who watches one of its keys is told.
#[tokio::test]
async fn what_one_lease_takes_along_is_told_to_each_of_its_watchers() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd.endpoints()[0]).await;
    let lease = LeaseId(7);
    client.lease_grant(lease, 60).await.unwrap();
    let mut watches = Vec::new();
    for number in 0..300 {
        let name = format!("leased/{number}");
        let put = PutRequest::new(name.clone(), "").with_lease(lease);
        client.put(put).await.unwrap();
        let request = WatchRequest::new(KeyRange::key(name));
        watches.push(client.watch(request).await.unwrap());
    }
    client.lease_revoke(lease).await.unwrap();
    let mut revisions = std::collections::BTreeSet::new();
    for watch in &mut watches {
        let told = watch.next().await.unwrap().unwrap();
        revisions.insert(told.events[0].kv.mod_revision);
    }
    assert_eq!(revisions.len(), 1);
}

/// B76: a request for a watch that nobody answers is the end of the stream for all, long before its
/// silence would be.
#[tokio::test]
async fn a_watch_that_is_not_answered_ends_the_stream_for_all() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::to(&etcd.endpoints()[0]).unwrap();
    let config = config(&proxy.endpoint()).with_request_timeout(Duration::from_millis(500));
    let client = EtcdClient::connect(config, runtime()).await.unwrap();
    let request = |name| WatchRequest::new(KeyRange::key(name));
    let mut first = client.watch(request("k")).await.unwrap();
    proxy.swallow(Direction::ToClient);
    client.watch(request("l")).await.unwrap_err();
    let ended = runtime().timeout(seconds(5), first.next()).await;
    ended.unwrap().unwrap().unwrap_err();
    assert!(first.next().await.is_none());
    proxy.heal();
    let mut again = until("a new stream", async || {
        client.watch(request("k")).await.ok()
    })
    .await;
    let server = connect(&etcd.endpoints()[0]).await;
    server.put(PutRequest::new("k", "")).await.unwrap();
    server.delete(DeleteRequest::key("k")).await.unwrap();
    assert!(again.next().await.unwrap().is_ok());
}

/// What a thousand waiters of one store object cost is told with `--nocapture`.
#[tokio::test]
async fn a_thousand_waiters_are_all_woken() {
    let etcd = Etcd::start().unwrap();
    let (endpoint, namespace) = (&etcd.endpoints()[0], fresh_namespace());
    let first = node(connect(endpoint).await, &namespace).await;
    let held = take(&first).await;
    let node = node(Counted::new(connect(endpoint).await), &namespace).await;
    let people = join(&node, 1_000).await;
    let before = (node.kv.calls(), resident(), node.runtime.now());
    let waits = people.iter().map(|person| {
        let person = person.clone();
        node.runtime.run_to_end(async move {
            // On a machine that is busy a call may be late.
            while let Err(error) = person.wait().await {
                assert!(error.is_retryable(), "{error:?}");
                println!("one waits again: {error:?}");
            }
        })
    });
    let waits: Vec<_> = waits.collect();
    let streams = Streams::of(endpoint);
    until("all watch", async || {
        (streams.watchers() == 1_001).then_some(())
    })
    .await;
    let stand = node.runtime.now().saturating_since(before.2);
    node.runtime.sleep(SETTLED).await;
    let (calls, memory) = (node.kv.calls().since(before.0), resident() - before.1);
    println!("{calls:?}, {memory} KiB, {stand:?} until all stand");
    let begun = node.runtime.now();
    release(&first, &held).await;
    let mut waits = waits.into_iter();
    waits.next().unwrap().await.unwrap();
    println!(
        "the first is woken after {:?}",
        node.runtime.now().saturating_since(begun)
    );
    let begun = node.runtime.now();
    etcd_session_ends(&first, people[0].session).await;
    for wait in waits {
        wait.await.unwrap();
    }
    println!(
        "all are woken after {:?}",
        node.runtime.now().saturating_since(begun)
    );
}

async fn etcd_session_ends(node: &Node<EtcdClient>, session: SessionId) {
    let lease = LeaseId(session.as_i64());
    node.kv.lease_revoke(lease).await.unwrap();
}

/// Memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}
