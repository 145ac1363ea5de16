//! Waiting among processes: the one that holds, or the one that is next, is killed.

use std::collections::BTreeMap;
use std::env;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fencelock::spi::{FencingToken, Instant, Runtime, TokioRuntime};
use fencelock::{Client, Release};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::{etcd, poll, postgres, within};

const KEY: &str = "nightly";
const ADDRESS: &str = "FENCELOCK_WAITER";
const STORE: &str = "FENCELOCK_WAITER_STORE";
/// What a hand-over may take beyond the ttl of those who are dead: the store's bound, on a machine
/// that is busy.
const BOUND: Duration = Duration::from_secs(6);

/// A process that acquires the key, tells so, and holds it until it is told otherwise.
struct Waiter {
    process: Child,
    stream: BufReader<TcpStream>,
}

/// Where waiters are started.
struct Start {
    test: &'static str,
    store: String,
    listener: TcpListener,
    admin: Client,
    runtime: Arc<dyn Runtime>,
}

impl Start {
    async fn new(test: &'static str, store: String) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        Self {
            test,
            admin: Client::connect(&store).await.unwrap(),
            store,
            listener: listener.unwrap(),
            runtime: Arc::new(TokioRuntime::current()),
        }
    }

    /// Starts one, and waits until it holds the key or so many wait for it.
    async fn waiter(&self, places: u32) -> Waiter {
        let process = Command::new(env::current_exe().unwrap())
            .args(["--nocapture", "--exact", self.test])
            .env(ADDRESS, self.listener.local_addr().unwrap().to_string())
            .env(STORE, &self.store)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let process = process.unwrap();
        let (stream, _) = within(&self.runtime, self.listener.accept()).await.unwrap();
        let waiter = Waiter {
            process,
            stream: BufReader::new(stream),
        };
        within(&self.runtime, async {
            while self.admin.admin().read(KEY).await.unwrap().waiter_count != Some(places) {
                self.runtime.sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        waiter
    }
}

impl Waiter {
    /// The token of its grant, once it has one.
    async fn granted(&mut self) -> FencingToken {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        line.trim_end().parse().unwrap()
    }

    async fn release(&mut self) {
        self.stream.write_all(b"release\n").await.unwrap();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Whether this process is a waiter.
fn is_one() -> bool {
    env::var_os(ADDRESS).is_some()
}

/// What a waiter does; it ends with the process that has started it.
async fn wait() {
    let address: SocketAddr = env::var(ADDRESS).unwrap().parse().unwrap();
    let locks = Client::connect(&env::var(STORE).unwrap()).await.unwrap();
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    let guard = locks
        .acquire(KEY)
        .wait_at_most(Duration::MAX)
        .await
        .unwrap();
    let line = format!("{}\n", guard.check().unwrap());
    stream.write_all(line.as_bytes()).await.unwrap();
    let mut told = String::new();
    if stream.read_line(&mut told).await.unwrap_or_default() > 0 {
        assert_eq!(guard.release().await.unwrap(), Release::Released);
    }
}

/// Each of several is killed in turn: whoever is next while another holds, and whoever holds.
async fn killed_in_turn(test: &'static str, store: String, ttl: Duration) {
    let start = Start::new(test, store).await;
    let mut holder = start.waiter(0).await;
    let mut last = within(&start.runtime, holder.granted()).await;
    for _ in 0..3 {
        let next = start.waiter(1).await;
        let mut second = start.waiter(2).await;
        let mut third = start.waiter(3).await;

        // The next in line dies, and then the holder releases: the second is granted.
        drop(next);
        holder.release().await;
        let token = granted_in_time(&start, &mut second, ttl).await;
        assert!(token > last);

        // The holder dies: the third is granted.
        drop(second);
        last = granted_in_time(&start, &mut third, ttl).await;
        assert!(last > token);
        holder = third;
    }
}

async fn granted_in_time(start: &Start, waiter: &mut Waiter, ttl: Duration) -> FencingToken {
    let began: Instant = start.runtime.now();
    let token = within(&start.runtime, waiter.granted()).await;
    let took = start.runtime.now().saturating_since(began);
    assert!(took < ttl + BOUND, "{took:?}");
    token
}

/// B52, INV-08.
#[tokio::test]
async fn killed_holders_and_waiters_hold_nobody_up_on_postgres() {
    const TEST: &str = "waiting::killed_holders_and_waiters_hold_nobody_up_on_postgres";
    if is_one() {
        return wait().await;
    }
    let server = postgres().await;
    let url = format!("{}?ttl=1s", server.url("app"));
    killed_in_turn(TEST, url, Duration::from_secs(1)).await;
}

/// B52, INV-08.
#[tokio::test]
async fn killed_holders_and_waiters_hold_nobody_up_on_etcd() {
    const TEST: &str = "waiting::killed_holders_and_waiters_hold_nobody_up_on_etcd";
    if is_one() {
        return wait().await;
    }
    let (_etcd, url) = etcd();
    killed_in_turn(TEST, format!("{url}?ttl=2s"), Duration::from_secs(2)).await;
}

/// Acquires that are given up at any moment leave neither a place nor a grant, and the client is as
/// good as before (INV-09).
async fn given_up_at_any_moment(store: String) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let holder = Client::connect(&store).await.unwrap();
    let other = Client::connect(&store).await.unwrap();
    for round in 0..2_u32 {
        let held = holder.acquire(KEY).await.unwrap();
        let mut outcomes = BTreeMap::new();
        for at in 0..200_u32 {
            // From less than a message takes to well into the waiting.
            let cut_off = Duration::from_micros(u64::from(at) * 40);
            let wait = async { other.acquire(KEY).await };
            let given_up = runtime.timeout(cut_off, wait).await.is_err();
            *outcomes.entry(given_up).or_insert(0) += 1;
        }
        assert_eq!(outcomes, BTreeMap::from([(true, 200)]), "round {round}");
        let none_waits = async {
            while holder.admin().read(KEY).await.unwrap().waiter_count != Some(0) {
                runtime.sleep(Duration::from_millis(20)).await;
            }
        };
        within(&runtime, none_waits).await;
        held.check().unwrap();
        assert_eq!(held.release().await.unwrap(), Release::Released);
        let guard = other
            .acquire(KEY)
            .wait_at_most(Duration::from_secs(10))
            .await;
        guard.unwrap().release().await.unwrap();
        assert!(holder.admin().read(KEY).await.unwrap().holder.is_none());
    }
    let report = other.shutdown().await;
    assert_eq!(report.left_to_expire, []);
}

#[tokio::test]
async fn acquires_given_up_at_any_moment_leave_nothing_on_postgres() {
    let server = postgres().await;
    given_up_at_any_moment(format!("{}?ttl=9s", server.url("app"))).await;
}

#[tokio::test]
async fn acquires_given_up_at_any_moment_leave_nothing_on_etcd() {
    let (_etcd, url) = etcd();
    given_up_at_any_moment(format!("{url}?ttl=9s")).await;
}

/// Hundreds of tasks of one client and several other clients want one key: all are served, tokens
/// rise in the order of the grants, and the holder's renewals come in time though it holds for longer
/// than its ttl while they wait (B94).
async fn many_want_one_key(store: String, ttl: Duration) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let holder = Client::connect(&store).await.unwrap();
    let held = holder.acquire(KEY).await.unwrap();
    let served = Arc::new(std::sync::Mutex::new(vec![held.token()]));
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(Client::connect(&store).await.unwrap());
    }
    for at in 0..500 {
        let (client, served) = (clients[at % 5].clone(), Arc::clone(&served));
        runtime.spawn(Box::pin(async move {
            let wait = client.acquire(KEY).wait_at_most(Duration::MAX);
            let guard = wait.await.unwrap();
            served.lock().unwrap().push(guard.check().unwrap());
            guard.release().await.unwrap();
        }));
    }
    runtime.sleep(ttl * 2).await;
    held.check().unwrap();
    let waiters = holder.admin().read(KEY).await.unwrap().waiter_count;
    assert_eq!(waiters, Some(5), "one place for each client");
    held.release().await.unwrap();
    let all = poll(&runtime, || served.lock().unwrap().len() == 501);
    within(&runtime, all).await;
    let served = served.lock().unwrap();
    assert!(served.windows(2).all(|pair| pair[0] < pair[1]));
}

#[tokio::test]
async fn many_who_want_one_key_are_all_served_on_postgres() {
    let server = postgres().await;
    let url = format!("{}?ttl=2s", server.url("app"));
    many_want_one_key(url, Duration::from_secs(2)).await;
}

#[tokio::test]
async fn many_who_want_one_key_are_all_served_on_etcd() {
    let (_etcd, url) = etcd();
    many_want_one_key(format!("{url}?ttl=2s"), Duration::from_secs(2)).await;
}
