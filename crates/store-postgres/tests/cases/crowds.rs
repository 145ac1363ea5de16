//! Many callers at once, and many calls one after the other.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use lock_spi::{FencingToken, Grant, InsertOutcome, LockKey, LockStore, Queue, Ttl};
use store_postgres::schema;
use test_servers::Postgres;

use crate::stage::{
    DATABASE, Node, TTL, attempt, backends, client, config, insist, key, revoking, runtime, server,
};

/// However busy the machine is.
const PATIENT: Duration = Duration::from_secs(10);

async fn patient(url: &str) -> Node {
    Node::with(url, config().with_request_timeout(PATIENT), TTL).await
}

fn standing(server: &Postgres) -> String {
    server
        .psql(DATABASE, "SELECT count(*) FROM dlock.grants")
        .unwrap()
}

/// What has been granted so far.
#[derive(Default)]
struct Witness(Mutex<BTreeMap<LockKey, (FencingToken, bool)>>);

impl Witness {
    fn taken(&self, grant: &Grant) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = keys.insert(grant.key.clone(), (grant.token, true));
        if let Some((token, is_held)) = before {
            assert!(!is_held, "{} is held twice", grant.key);
            assert!(grant.token > token, "{} went back", grant.key);
        }
    }

    fn left(&self, grant: &Grant) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(grant.key.clone(), (grant.token, false));
    }
}

/// Takes a key unless somebody has it; whether it did.
async fn take_and_release(node: &Node, key: &LockKey, witness: &Witness, hold: Duration) -> bool {
    match node.insert(key, attempt(), Queue::Never).await.unwrap() {
        InsertOutcome::Granted(grant) => {
            witness.taken(&grant);
            runtime().sleep(hold).await;
            witness.left(&grant);
            assert!(node.release(&grant).await.unwrap(), "{key}");
            true
        }
        InsertOutcome::Held(_) => false,
        other => panic!("{other:?}"),
    }
}

/// B89: no release fails, and in the end all is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_short_holds_of_many_keys_leave_nothing_behind() {
    let server = server().await;
    let node = patient(&server.url(DATABASE)).await;
    let keys: Vec<_> = (0..200)
        .map(|number| key(&format!("key {number}")))
        .collect();
    let witness = Witness::default();
    let tasks = (0..30).map(async |_| {
        let mut taken = 0;
        for _ in 0..40 {
            let random = runtime().random();
            let key = &keys[usize::try_from(random % 200).unwrap()];
            let hold = Duration::from_millis(1 + random / 200 % 10);
            taken += usize::from(take_and_release(&node, key, &witness, hold).await);
        }
        taken
    });
    let taken: usize = join_all(tasks).await.into_iter().sum();
    assert!(taken > 500, "{taken}");
    assert_eq!(standing(&server), "0");
}

/// B95: a thousand locks one after the other are taken on one connection, the same from the
/// beginning to the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_lock_after_the_other_makes_no_further_connections() {
    let server = server().await;
    let node = patient(&server.url(DATABASE)).await;
    let connections = || {
        let connections = "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity \
                           WHERE application_name = 'fencelock'";
        server.psql("postgres", connections).unwrap()
    };
    let before = connections();
    assert!(before.parse::<u32>().is_ok(), "one: {before}");
    let key = key("nightly");
    for _ in 0..1000 {
        let grant = node.acquire(&key).await;
        assert!(node.release(&grant).await.unwrap());
    }
    assert_eq!(connections(), before);
}

/// B86: a connection that is shared makes nobody an owner of what others hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_one_connection_a_lock_is_granted_once() {
    let server = server().await;
    let node = patient(&format!("{}?connections=1", server.url(DATABASE))).await;
    let key = key("nightly");
    let inserts = (0..20).map(|_| node.insert(&key, attempt(), Queue::Never));
    let mut granted = Vec::new();
    for outcome in join_all(inserts).await {
        match outcome.unwrap() {
            InsertOutcome::Granted(grant) => granted.push(grant),
            InsertOutcome::Held(Some(holder)) => assert_eq!(holder.session, node.session),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(granted.len(), 1);
    assert_eq!(backends(&server, "true"), 1);
}

/// B94: of two connections, with five hundred that want the lock, enough is left for the holder to
/// renew; who gives up waiting leaves no place behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_waiters_does_not_keep_the_holder_from_renewing() {
    const WAITS: Duration = Duration::from_secs(1);
    let server = server().await;
    let url = format!("{}?connections=2", server.url(DATABASE));
    let node = Node::with(&url, config(), Ttl::DEFAULT.as_duration()).await;
    let grant = node.acquire(&key("nightly")).await;
    let waiters = join_all((0..500).map(async |_| {
        let attempt = attempt();
        let placed = insist(async || node.insert(&grant.key, attempt, Queue::Join).await).await;
        let InsertOutcome::Queued(place) = placed else {
            panic!("{placed:?}");
        };
        let wait = node.store.await_release(lock_spi::WaitRequest {
            key: grant.key.clone(),
            session: node.session,
            attempt,
            place: Some(place),
        });
        match runtime().timeout(WAITS, wait).await {
            Ok(Ok(())) => panic!("it is held"),
            Ok(Err(error)) => assert!(error.is_retryable(), "{error:?}"),
            Err(_waited_enough) => {}
        }
        insist(async || node.store.abandon(&grant.key, node.session, attempt).await).await;
    }));
    let (store, held) = (node.store.clone(), grant.clone());
    let renewals = runtime().run_to_end(async move {
        loop {
            match store.extend(&held.key, held.token).await {
                Ok(extended) => assert!(extended.is_some(), "it is lost"),
                Err(error) => assert!(!error.to_string().contains("busy"), "{error}"),
            }
            runtime().sleep(Duration::from_millis(300)).await;
        }
    });
    tokio::select! {
        biased;
        Err(_ended) = renewals => panic!("a renewal failed"),
        _all_have_given_up = waiters => {}
    }
    assert!(node.stands(&grant).await);
    let places = server.psql(DATABASE, "SELECT count(*) FROM dlock.waiters");
    assert_eq!(places.unwrap(), "0");
    assert!(backends(&server, "true") <= 3, "two, and one that listens");
    assert!(node.release(&grant).await.unwrap());
}

/// B190: on an empty database, several rounds of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixteen_that_make_the_schema_at_once_none_fails() {
    let server = Postgres::start().unwrap();
    for round in 0..4 {
        let database = format!("round_{round}");
        server.create_database(&database).unwrap();
        let clients: Vec<_> = (0..16).map(|_| client(&server.url(&database))).collect();
        for made in join_all(clients.iter().map(schema::migrate)).await {
            assert_eq!(made.unwrap().found, Some(schema::WANTED));
        }
        let history = server.psql(&database, "SELECT count(*) FROM dlock.migrations");
        assert_eq!(history.unwrap(), "1");
    }
}

/// Backends tests 67 and 70: rows come and go under those who take their keys. Nobody notices, and
/// what has a floor stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reaper_that_forgets_rows_at_once_disturbs_nobody() {
    let server = server().await;
    let node = patient(&server.url(DATABASE)).await;
    let reaper = patient(&server.url(DATABASE)).await;
    server
        .psql(DATABASE, "UPDATE dlock.meta SET idle = '-1 hour'")
        .unwrap();
    let floored = key("floored");
    node.store.revoke(revoking(&floored)).await.unwrap();
    let keys = [key("one"), key("two")];
    let witness = Witness::default();
    let takers = join_all((0..4).map(async |number: usize| {
        let mut taken = 0;
        for _ in 0..150 {
            let key = &keys[number % 2];
            taken += usize::from(take_and_release(&node, key, &witness, Duration::ZERO).await);
        }
        taken
    }));
    let reaping = async {
        loop {
            reaper.store.reap_expired(100).await.unwrap();
        }
    };
    let taken: usize = tokio::select! {
        biased;
        taken = takers => taken.into_iter().sum(),
        () = reaping => unreachable!("it goes on for ever"),
    };
    assert!(taken > 100, "{taken}");
    let deleted = "SELECT retired > 0 FROM dlock.meta";
    assert_eq!(
        server.psql(DATABASE, deleted).unwrap(),
        "t",
        "nothing was forgotten"
    );
    let rows = server.psql(
        DATABASE,
        "SELECT lock_key FROM dlock.locks WHERE floor IS NOT NULL",
    );
    assert_eq!(rows.unwrap(), floored.as_str());
    let floor = node.store.read(&floored).await.unwrap().floor;
    assert!(Some(node.acquire(&floored).await.token) > floor);
}
