//! Waiting where notifications are lost, refused, or meant for somebody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_spi::{
    BoxFuture, Grant, InsertOutcome, Instant, LockStore, Queue, Runtime, SessionId, WaitRequest,
};
use store_postgres::PostgresLockStore;
use store_postgres::schema::{Role, grants};
use test_servers::{Cut, Postgres, Proxy, Trap};

use super::support::Way;
use crate::stage::{
    DATABASE, Node, SLACK, TTL, backends, client, config, end_backends, eventually, insist, key,
    opening, runtime, server, url_of,
};

/// Within this time a waiter must be told; it would look by itself later.
const TOLD: Duration = Duration::from_secs(30);
/// So late.
const SELDOM: Duration = Duration::from_secs(60);
const LISTENS: &str = "query LIKE 'LISTEN%'";

/// Waits for its turn and takes it.
async fn take_turn(node: &Node, request: &WaitRequest) -> Grant {
    let turn = async {
        loop {
            insist(async || node.store.await_release(request.clone()).await).await;
            let attempt = request.attempt;
            let insert = async || node.insert(&request.key, attempt, Queue::Join).await;
            if let InsertOutcome::Granted(grant) = insist(insert).await {
                return grant;
            }
        }
    };
    tokio::select! {
        biased;
        grant = turn => grant,
        () = runtime().sleep(TOLD) => panic!("it was not told"),
    }
}

async fn somebody_listens(server: &Postgres) {
    eventually("somebody listens", || backends(server, LISTENS) > 0).await;
    eventually("it has looked", || {
        backends(server, "state = 'active'") == 0
    })
    .await;
}

/// B71: by a word of the server, by an end of the connection without one, by a reset.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_the_connection_that_listens_ends_another_one_listens() {
    let server = server().await;
    let way = Way::to(&server).await;
    let fragile = Proxy::to(&server.address()).unwrap();
    let holder = Node::at(&server.url(DATABASE)).await;
    let patient = config().with_look_again(SELDOM);
    let terminate = || assert_eq!(end_backends(&server, LISTENS), 1);
    let close = || way.lead_to(&server);
    let reset = || fragile.reset();
    let ends: [(_, &dyn Fn()); 3] = [
        (way.url(), &terminate),
        (way.url(), &close),
        (url_of(&[fragile.endpoint()]), &reset),
    ];
    for (url, end) in ends {
        let waiter = Node::with(&url, patient.clone(), TTL).await;
        let grant = holder.acquire(&key("nightly")).await;
        let request = waiter.enqueue(&grant.key).await;
        let release = async {
            somebody_listens(&server).await;
            let listens = "SELECT max(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
            let listener = || server.psql("postgres", listens).unwrap();
            let first = listener();
            end();
            eventually("another one listens", || {
                let now = listener();
                !now.is_empty() && now != first
            })
            .await;
            assert!(holder.release(&grant).await.unwrap());
        };
        let (turn, ()) = tokio::join!(take_turn(&waiter, &request), release);
        assert!(turn.token > grant.token);
        assert!(waiter.release(&turn).await.unwrap());
        drop(waiter);
        eventually("nobody listens any more", || {
            backends(&server, LISTENS) == 0
        })
        .await;
    }
}

/// B70: the release falls between the look after the gap and the moment when somebody listens
/// again. Until then it is tried less and less often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_while_nobody_can_listen_is_found_once_somebody_does() {
    let server = server().await;
    let way = Proxy::to(&server.address()).unwrap();
    let holder = Node::at(&server.url(DATABASE)).await;
    let url = url_of(&[way.endpoint()]);
    let waiter = Node::with(&url, config().with_look_again(SELDOM), TTL).await;
    let grant = holder.acquire(&key("nightly")).await;
    let request = waiter.enqueue(&grant.key).await;
    let release = async {
        somebody_listens(&server).await;
        let arm = |_| way.arm("LISTEN ", Cut::BeforeRequest);
        let traps: Vec<_> = (0..40).map(arm).collect();
        let sprung = || traps.iter().filter(|trap| Trap::has_sprung(trap)).count();
        assert_eq!(end_backends(&server, LISTENS), 1);
        eventually("nobody can listen", || sprung() >= 3).await;
        assert!(holder.release(&grant).await.unwrap());
        assert!(sprung() < 20, "{} times", sprung());
        way.heal();
    };
    let (turn, ()) = tokio::join!(take_turn(&waiter, &request), release);
    assert!(turn.token > grant.token);
}

/// B74: nobody is ever notified. All are served in their order, by looking.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_notification_goes_out_looking_is_enough() {
    const LOOKS: Duration = Duration::from_secs(1);
    let server = server().await;
    let role = "CREATE ROLE app LOGIN; \
                REVOKE EXECUTE ON FUNCTION pg_catalog.pg_notify(text, text) FROM PUBLIC";
    server.psql(DATABASE, role).unwrap();
    server
        .psql(DATABASE, &grants(Role::Application, "app"))
        .unwrap();
    let url = format!("postgres://app@{}/{DATABASE}", server.address());
    let looks = config().with_look_again(LOOKS);
    let holder = Node::with(&url, looks.clone(), TTL).await;
    let mut grant = holder.acquire(&key("nightly")).await;
    assert!(holder.release(&grant).await.unwrap());
    grant = holder.acquire(&grant.key).await;
    let mut waiters = Vec::new();
    for _ in 0..3 {
        let waiter = Node::with(&url, looks.clone(), TTL).await;
        let request = waiter.enqueue(&grant.key).await;
        waiters.push((waiter, request));
    }
    let mut before = &holder;
    for (waiter, request) in &waiters {
        let release = async {
            somebody_listens(&server).await;
            let released = runtime().now();
            assert!(before.release(&grant).await.unwrap());
            released
        };
        let (turn, released) = tokio::join!(take_turn(waiter, request), release);
        assert!(turn.token > grant.token);
        let took = runtime().now().saturating_since(released);
        assert!(took < LOOKS + SLACK + SLACK, "{took:?}");
        (before, grant) = (waiter, turn);
    }
}

/// What draws the same numbers as others at first, and so makes a store object that has their name.
#[derive(Debug)]
struct Namesake {
    real: Arc<dyn Runtime>,
    drawn: AtomicU32,
}

impl Runtime for Namesake {
    fn now(&self) -> Instant {
        self.real.now()
    }

    fn wall_clock(&self) -> Duration {
        self.real.wall_clock()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        self.real.sleep_until(deadline)
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.real.spawn(task);
    }

    fn random(&self) -> u64 {
        match self.drawn.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => 7,
            _ => self.real.random(),
        }
    }
}

async fn namesake(server: &Postgres) -> Node {
    let real = runtime();
    let runtime: Arc<dyn Runtime> = Arc::new(Namesake {
        real,
        drawn: AtomicU32::new(0),
    });
    let config = config().with_look_again(Duration::from_secs(1));
    let store = PostgresLockStore::connect(client(&server.url(DATABASE)), runtime, config);
    let store = store.await.unwrap();
    let session = SessionId::random(&*self::runtime());
    store.open_session(opening(session, TTL)).await.unwrap();
    Node { store, session }
}

/// B133: three store objects listen on one channel, and take each other's waiters for their own.
/// Some are told late, and all are served, each by its own key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_objects_that_share_a_channel_only_wake_later() {
    let server = server().await;
    let (holder, one, two) = (
        namesake(&server).await,
        namesake(&server).await,
        namesake(&server).await,
    );
    let held = [
        holder.acquire(&key("one")).await,
        holder.acquire(&key("two")).await,
    ];
    let wishes = [
        one.enqueue(&held[0].key).await,
        two.enqueue(&held[1].key).await,
    ];
    let release = async {
        eventually("both listen", || backends(&server, LISTENS) == 2).await;
        for grant in &held {
            assert!(holder.release(grant).await.unwrap());
        }
    };
    let (first, second, ()) = tokio::join!(
        take_turn(&one, &wishes[0]),
        take_turn(&two, &wishes[1]),
        release,
    );
    let channels = "SELECT count(DISTINCT query) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    assert_eq!(server.psql("postgres", channels).unwrap(), "1");
    assert_eq!((&first.key, first.session), (&held[0].key, one.session));
    assert_eq!((&second.key, second.session), (&held[1].key, two.session));
    assert!(one.stands(&first).await && two.stands(&second).await);
}
