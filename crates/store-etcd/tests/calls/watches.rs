//! Watches that break, go silent or fall behind: whoever waits goes on.

use std::time::Duration;

use bytes::Bytes;
use etcd_kv::{DeleteRequest, KeyRange, KvErrorKind, LeaseId, MetadataStore, Txn, WatchRequest};
use futures_util::StreamExt;
use lock_spi::{AttemptId, InsertOutcome, LockStore, Queue, SessionId, WaitRequest};
use store_etcd::EtcdClient;
use test_servers::{Direction, Etcd, Proxy};

use crate::common::{granted, key, queued};
use crate::live::until::until;
use crate::live::ways::{config, connect, runtime};
use crate::stage::Stage;

/// Far more than it takes, for a machine that is busy; and less than the pings of a connection or
/// the usual patience with a watch would take.
const IN_TIME: Duration = Duration::from_secs(9);

/// Somebody in line behind the proxy.
struct Waiter {
    session: SessionId,
    attempt: AttemptId,
    text: &'static str,
    wait: WaitRequest,
}

impl Waiter {
    async fn queues(stage: &Stage, text: &'static str) -> Self {
        let (session, attempt) = (stage.session().await, stage.node.attempt());
        let join = async || stage.node.insert(session, text, attempt, Queue::Join).await;
        let place = queued(stage.insist(join).await);
        let wait = WaitRequest {
            key: key(text),
            session,
            attempt,
            place: Some(place),
        };
        Self {
            session,
            attempt,
            text,
            wait,
        }
    }

    /// Asks once.
    async fn ask(&self, stage: &Stage) -> lock_spi::Result<InsertOutcome> {
        let (session, attempt) = (self.session, self.attempt);
        (stage.node.insert(session, self.text, attempt, Queue::Join)).await
    }

    /// Waits and asks, as a client does, until there is a grant.
    async fn goes_on(&self, stage: &Stage) {
        until("a grant", async || {
            let waited = stage.node.store.await_release(self.wait.clone());
            // A hint or none: it asks.
            drop(runtime().timeout(Duration::from_secs(2), waited).await);
            let Ok(InsertOutcome::Granted(grant)) = self.ask(stage).await else {
                return None;
            };
            Some(grant)
        })
        .await;
        stage.nothing_is_left_of(self.session).await;
    }

    /// A wait that has begun: its watches stand.
    async fn wait(
        &self,
        stage: &Stage,
    ) -> impl Future<Output = lock_spi::Result<()>> + Send + use<> {
        let (store, request) = (stage.node.store.clone(), self.wait.clone());
        let waits = async move { store.await_release(request).await };
        let task = runtime().run_to_end(waits);
        // Two watches and a look; and where it did not know who is before it, once more.
        runtime().sleep(Duration::from_millis(500)).await;
        async move { task.await.expect("it is not dropped") }
    }
}

async fn ends_in_time<T>(what: &str, future: impl Future<Output = T> + Send) -> T {
    let ended = runtime().timeout(IN_TIME, future).await;
    ended.unwrap_or_else(|_| panic!("{what} does not end"))
}

async fn impatient(endpoint: &str) -> EtcdClient {
    let config = config(endpoint).with_watch_silence(Duration::from_millis(400));
    EtcdClient::connect(config, runtime()).await.unwrap()
}

/// B76: a watch on which nothing comes any more ends with an error, though its connection stands.
#[tokio::test]
async fn a_watch_that_gives_no_sign_of_life_is_given_up() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::to(&etcd.endpoints()[0]).unwrap();
    let client = impatient(&proxy.endpoint()).await;
    let mut watch = client
        .watch(WatchRequest::new(KeyRange::key("k")))
        .await
        .unwrap();
    proxy.swallow(Direction::ToClient);
    let ended = ends_in_time("the watch", watch.next()).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), KvErrorKind::Unavailable);
    assert!(watch.next().await.is_none());
}

/// One on which nothing happens gives its sign of life, for as long as it is asked.
#[tokio::test]
async fn a_watch_on_which_nothing_happens_lives_on() {
    let etcd = Etcd::start().unwrap();
    let client = impatient(&etcd.endpoints()[0]).await;
    let mut watch = client
        .watch(WatchRequest::new(KeyRange::key("k")))
        .await
        .unwrap();
    let silence = runtime()
        .timeout(Duration::from_secs(3), watch.next())
        .await;
    assert!(silence.is_err(), "{silence:?}");
    client
        .put(etcd_kv::PutRequest::new("k", "v"))
        .await
        .unwrap();
    let event = ends_in_time("the watch", watch.next())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(event.events.len(), 1);
}

/// B76: the connections of a waiter die unnoticed, its watch with them, and the holder leaves: the
/// waiter gets on, long before pings find that out.
#[tokio::test]
async fn a_waiter_whose_connections_died_unnoticed_gets_on() {
    let etcd = Etcd::start().unwrap();
    let stage = Stage::at(&etcd).await;
    let holder = stage.others("k").await;
    let waiter = Waiter::queues(&stage, "k").await;
    let waits = waiter.wait(&stage).await;
    stage.proxy.mute();
    stage.others_ends(&holder).await;
    let left_at = runtime().now();
    waiter.goes_on(&stage).await;
    assert!(runtime().now().saturating_since(left_at) < IN_TIME);
    drop(waits);
}

/// B79, B77: the connection of a waiter breaks, and while it is away what it saw is compacted: it
/// waits on, and gets on in its turn.
#[tokio::test]
async fn a_waiter_that_was_cut_off_over_a_compaction_gets_on() {
    let etcd = Etcd::start().unwrap();
    let stage = Stage::at(&etcd).await;
    let holder = stage.others("k").await;
    let waiter = Waiter::queues(&stage, "k").await;
    let waits = waiter.wait(&stage).await;
    stage.proxy.swallow(Direction::ToServer);
    stage.proxy.reset();
    ends_in_time("the wait", waits).await.unwrap();
    let server = &stage.other.kv;
    let mut last = 0;
    for _ in 0..3 {
        let put = server.put(etcd_kv::PutRequest::new("elsewhere", "")).await;
        last = put.unwrap().header.revision;
    }
    server.compact(last).await.unwrap();
    stage.proxy.heal();
    let again = stage.insist(async || waiter.ask(&stage).await).await;
    let place = queued(again);
    assert_eq!(
        Some(place.position),
        waiter.wait.place.as_ref().map(|place| place.position)
    );
    let waits = waiter.wait(&stage).await;
    stage.others_ends(&holder).await;
    ends_in_time("the wait", waits).await.unwrap();
    granted(stage.insist(async || waiter.ask(&stage).await).await);
    stage.nothing_is_left_of(waiter.session).await;
}

/// B80: one transaction ends what two wait for while their watches are broken: both wake.
#[tokio::test]
async fn one_step_that_frees_two_keys_wakes_both_though_the_watches_broke() {
    let etcd = Etcd::start().unwrap();
    for loses_events in [true, false] {
        let stage = Stage::at(&etcd).await;
        stage.others("k1").await;
        stage.others("k2").await;
        let (one, two) = (
            Waiter::queues(&stage, "k1").await,
            Waiter::queues(&stage, "k2").await,
        );
        let waits = [one.wait(&stage).await, two.wait(&stage).await];
        if loses_events {
            stage.proxy.swallow(Direction::ToClient);
        }
        let both = ["lock/k1", "lock/k2"]
            .map(|name| DeleteRequest::key(Bytes::from(stage.stored.key(name))).into());
        stage.other.kv.txn(Txn::default().then(both)).await.unwrap();
        match loses_events {
            true => stage.proxy.heal(),
            false => stage.proxy.reset(),
        }
        for wait in waits {
            ends_in_time("the wait", wait).await.unwrap();
        }
        for waiter in [one, two] {
            granted(stage.insist(async || waiter.ask(&stage).await).await);
        }
    }
}

/// B77: the member of the watches is killed and comes back: all who wait go on, in their order.
#[tokio::test]
async fn waiters_outlive_the_member_of_their_watches() {
    let mut etcd = Etcd::start().unwrap();
    let stage = Stage::straight_at(&etcd).await;
    let mut holding = stage.others("k").await;
    let mut line = Vec::new();
    for _ in 0..3 {
        line.push(Waiter::queues(&stage, "k").await);
    }
    let mut waits = Vec::new();
    for waiter in &line {
        waits.push(waiter.wait(&stage).await);
    }
    etcd.kill(0).unwrap();
    for wait in waits {
        ends_in_time("the wait", wait).await.unwrap();
    }
    etcd.restart(0).unwrap();
    for waiter in line {
        queued(stage.insist(async || waiter.ask(&stage).await).await);
        let waits = waiter.wait(&stage).await;
        let release = async || {
            (stage
                .other
                .store
                .delete_if_owner(&holding.key, holding.token))
            .await
        };
        stage.insist(release).await;
        ends_in_time("the wait", waits).await.unwrap();
        let next = granted(stage.insist(async || waiter.ask(&stage).await).await);
        assert!(next.token > holding.token);
        holding = next;
    }
}

/// B127: what an operator put there without a lease is no lock and no place: it is waited for by
/// nobody.
#[tokio::test]
async fn junk_without_a_lease_is_waited_for_by_nobody() {
    let etcd = Etcd::start().unwrap();
    let stage = Stage::at(&etcd).await;
    let server = connect(&etcd.endpoints()[0]).await;
    for junk in [
        "lock/path/1",
        "lock/path%2F1/x",
        "lock/",
        "wait/path%2F1",
        "wait/path/1",
    ] {
        let put = etcd_kv::PutRequest::new(stage.stored.key(junk), "junk");
        server.put(put).await.unwrap();
    }
    let holder = stage.others("path/1").await;
    let waiter = Waiter::queues(&stage, "path/1").await;
    stage.others_ends(&holder).await;
    let grant = granted(stage.insist(async || waiter.ask(&stage).await).await);
    assert!(grant.token > holder.token);
    let all = lock_spi::KeyPrefix::default();
    let list = async || {
        let page = lock_spi::PageRequest::default();
        stage.node.store.list(&all, page).await
    };
    let listed = stage.insist(list).await.entries;
    let keys: Vec<_> = listed.iter().map(|lock| lock.key.as_str()).collect();
    assert_eq!(keys, ["path/1"]);
}

/// B154, B20: a session whose lease is gone is closed as if it were there, and its grant is lost.
#[tokio::test]
async fn closing_a_session_whose_lease_is_gone_is_fine() {
    let etcd = Etcd::start().unwrap();
    let stage = Stage::at(&etcd).await;
    let session = stage.session().await;
    let (grant, _) = stage.own(session, "k").await;
    let lease = LeaseId(session.as_i64());
    stage.other.kv.lease_revoke(lease).await.unwrap();
    let extend = async || stage.node.store.extend(&grant.key, grant.token).await;
    assert_eq!(stage.insist(extend).await, None);
    let release = async || (stage.node.store.delete_if_owner(&grant.key, grant.token)).await;
    assert!(!stage.insist(release).await);
    stage.nothing_is_left_of(session).await;
}
