//! Clocks on the wall that are wrong: the server's, which decides how long a lease is, and a
//! client's, which decides nothing.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{
    BoxFuture, ErrorKind, InsertOutcome, Instant, LockStore, Queue, Runtime, SessionId, Severity,
    StoreAdmin,
};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use store_postgres::PostgresLockStore;
use test_servers::{Postgres, Step};

use crate::stage::{
    DATABASE, Node, TTL, attempt, client, config, key, opening, runtime, server, with_schema,
};

const MINUTE: Duration = Duration::from_secs(60);

async fn server_with_a_clock() -> Postgres {
    with_schema(Postgres::builder().faketime().start().unwrap()).await
}

/// Backends test 50, P20: leases end early, and are told as ended; whoever comes next has a higher
/// token. A step that is shorter than the lease costs nobody anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_clock_that_steps_forward_ends_leases_and_says_so() {
    let server = server_with_a_clock().await;
    let (holder, other) = (
        Node::at(&server.url(DATABASE)).await,
        Node::with(&server.url(DATABASE), config(), MINUTE * 30).await,
    );
    let grant = holder.acquire(&key("nightly")).await;
    server.step_clock(TTL / 2, Step::Forward).unwrap();
    let extended = holder.store.extend(&grant.key, grant.token).await.unwrap();
    let left = extended.unwrap().remaining.unwrap();
    assert!(left > TTL * 3 / 4 && left <= TTL, "{left:?}");
    server.step_clock(TTL + MINUTE, Step::Forward).unwrap();
    let next = other.acquire(&grant.key).await;
    assert!(next.token > grant.token);
    assert!(
        holder
            .store
            .extend(&grant.key, grant.token)
            .await
            .unwrap()
            .is_none()
    );
    assert!(holder.renew(&[&grant]).await.unwrap().is_none());
    assert!(!holder.release(&grant).await.unwrap());
    let late = holder
        .insert(&grant.key, attempt(), Queue::Never)
        .await
        .unwrap_err();
    assert_eq!(late.kind(), ErrorKind::SessionGone);
    assert!(other.stands(&next).await);
}

/// Backends test 50, P20: leases last longer, nothing that was told as gone comes back, and nobody
/// is told of more than the ttl: the clock may be put right at any moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_clock_that_steps_back_revives_nothing_and_promises_no_more_than_the_ttl() {
    let server = server_with_a_clock().await;
    let node = Node::with(&server.url(DATABASE), config(), MINUTE * 3).await;
    let ended = Node::at(&server.url(DATABASE)).await;
    let (gone, held) = (
        ended.acquire(&key("gone")).await,
        node.acquire(&key("held")).await,
    );
    server
        .step_clock(TTL + Duration::from_secs(1), Step::Forward)
        .unwrap();
    assert!(
        ended
            .store
            .extend(&gone.key, gone.token)
            .await
            .unwrap()
            .is_none()
    );
    let before = node
        .store
        .extend(&held.key, held.token)
        .await
        .unwrap()
        .unwrap();
    server.step_clock(MINUTE * 2, Step::Back).unwrap();
    assert!(
        ended
            .store
            .extend(&gone.key, gone.token)
            .await
            .unwrap()
            .is_none()
    );
    assert!(ended.renew(&[&gone]).await.unwrap().is_none());
    let ttl = MINUTE * 3;
    let extended = node
        .store
        .extend(&held.key, held.token)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(extended.token, before.token);
    let kept = node.renew(&[&held]).await.unwrap().unwrap();
    assert!(kept.gone.is_empty(), "{kept:?}");
    let opened = node
        .store
        .open_session(opening(node.session, ttl))
        .await
        .unwrap();
    let next = node.acquire(&gone.key).await;
    assert!(next.token > gone.token && next.token > held.token);
    let told = [
        extended.remaining.unwrap(),
        kept.remaining,
        opened.remaining,
        next.remaining.unwrap(),
    ];
    for left in told {
        assert!(left > ttl * 3 / 4 && left <= ttl, "{told:?}");
    }
    assert!(node.release(&held).await.unwrap());
}

/// Backends test 69: who keeps an old snapshot open is found out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_open_for_long_is_told_to_operators() {
    let server = server_with_a_clock().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let mut other = PgConnection::connect(&server.url(DATABASE)).await.unwrap();
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM dlock.locks";
    sqlx::raw_sql(snapshot).execute(&mut other).await.unwrap();
    let told = async || {
        let findings = node.store.diagnose().await.unwrap();
        findings
            .into_iter()
            .find(|finding| finding.id == "old_transaction")
    };
    assert_eq!(told().await, None);
    server.step_clock(MINUTE * 6, Step::Forward).unwrap();
    let finding = told().await.unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.what_to_do.contains("pg_stat_activity"),
        "{finding:?}"
    );
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert_eq!(told().await, None);
}

/// A machine whose clock on the wall is wrong.
#[derive(Debug)]
struct Skewed {
    right: Arc<dyn Runtime>,
    wall_clock: Duration,
}

impl Runtime for Skewed {
    fn now(&self) -> Instant {
        self.right.now()
    }

    fn wall_clock(&self) -> Duration {
        self.wall_clock
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        self.right.sleep_until(deadline)
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.right.spawn(task);
    }

    fn random(&self) -> u64 {
        self.right.random()
    }
}

/// B103, B104, B110: whatever time a client believes it is. Only durations are sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clients_clock_on_the_wall_decides_nothing() {
    let server = server().await;
    let holder = Node::at(&server.url(DATABASE)).await;
    let now = runtime().wall_clock();
    for wall_clock in [Duration::ZERO, now - MINUTE * 3, now, now + MINUTE * 3] {
        let right = runtime();
        let skewed: Arc<dyn Runtime> = Arc::new(Skewed { right, wall_clock });
        let store = PostgresLockStore::connect(client(&server.url(DATABASE)), skewed, config());
        let store = store.await.unwrap();
        let session = SessionId::random(&*runtime());
        let lease = store.open_session(opening(session, TTL)).await.unwrap();
        assert!(
            lease.remaining > TTL * 3 / 4 && lease.remaining <= TTL,
            "{lease:?}"
        );
        let node = Node { store, session };
        let grant = holder.acquire(&key("nightly")).await;
        let refused = node.insert(&grant.key, attempt(), Queue::Never).await;
        let Ok(InsertOutcome::Held(Some(of_holder))) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(of_holder.token, grant.token);
        assert!(holder.release(&grant).await.unwrap());
        let next = node.acquire(&grant.key).await;
        assert!(next.token > grant.token && node.stands(&next).await);
        assert!(node.release(&next).await.unwrap());
    }
    let takes_moments = "SELECT proname FROM pg_proc p, unnest(p.proargtypes) argument \
         WHERE p.pronamespace = 'dlock'::regnamespace AND p.prosecdef \
           AND argument IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype)";
    assert_eq!(server.psql(DATABASE, takes_moments).unwrap(), "");
}
