//! Which server is used, and what stands between it and a store.

mod stage;

use std::net::SocketAddr;
use std::time::Duration;

use lock_spi::{ErrorKind, InsertOutcome, LockStore, Queue};
use store_postgres::PostgresLockStore;
use test_servers::{Direction, Postgres, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::{
    DATABASE, Node, attempt, client, config, end_backends, insist, key, runtime, server, url_of,
    with_schema,
};

async fn refused(url: &str) -> lock_spi::Error {
    let store = PostgresLockStore::connect(client(url), runtime(), config()).await;
    store.expect_err("no store")
}

/// P39: a host that is down and one that takes no writes are passed over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_hosts_the_one_that_takes_writes_is_used() {
    let primary = server().await;
    let standby = primary.standby().unwrap();
    standby.catch_up_with(&primary).unwrap();
    // Nothing listens on the port of discard.
    let hosts = [
        "127.0.0.1:9".to_owned(),
        standby.address(),
        primary.address(),
    ];
    let node = Node::at(&url_of(&hosts)).await;
    let grant = node.acquire(&key("nightly")).await;
    assert!(node.release(&grant).await.unwrap());
    let error = refused(&url_of(&hosts[..2])).await;
    assert_eq!(error.kind(), ErrorKind::NotLeader, "{error:?}");
    assert!(error.is_retryable());
}

/// Over a way so long that a new connection takes longer than a call may, one is found all the same,
/// also after all were lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_long_way_connections_are_made_although_they_take_longer_than_a_call() {
    let server = server().await;
    let proxy = Proxy::to(&server.address()).unwrap();
    for direction in [Direction::ToServer, Direction::ToClient] {
        proxy.delay(direction, Duration::from_millis(150));
    }
    let url = url_of(&[proxy.endpoint()]);
    let node = Node::with(&url, config(), lock_spi::Ttl::DEFAULT.as_duration()).await;
    let grant = node.acquire(&key("far")).await;
    assert!(end_backends(&server, "true") > 0);
    assert!(insist(async || node.store.delete_if_owner(&grant.key, grant.token).await).await);
}

/// P9, P10, P39, backends tests 47 and 58: the primary is lost and the standby promoted. The store
/// goes on there by itself, and tokens rise, although the newest grants are lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_fail_over_tokens_rise() {
    let mut primary = server().await;
    let standby = primary.standby().unwrap();
    let node = Node::at(&url_of(&[primary.address(), standby.address()])).await;
    let (kept, lost) = (node.acquire(&key("kept")).await, key("lost"));
    standby.catch_up_with(&primary).unwrap();
    standby.cut_replication().unwrap();
    let mut last = node.acquire(&lost).await;
    for _ in 0..50 {
        assert!(node.release(&last).await.unwrap());
        last = node.acquire(&lost).await;
    }
    primary.kill().unwrap();
    standby.promote().unwrap();
    assert!(node.stands(&kept).await, "it was replicated");
    let wanted = attempt();
    let outcome = insist(async || node.insert(&lost, wanted, Queue::Never).await).await;
    let InsertOutcome::Granted(grant) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(grant.token > last.token);
    assert!(grant.token.term() > last.token.term());
    assert!(node.release(&grant).await.unwrap());
}

/// P38: a password that is wrong, or missing, is `Denied`; no error shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_denied_and_shown_to_nobody() {
    let builder = Postgres::builder().password("right");
    let server = with_schema(builder.start().expect("a server of Postgres")).await;
    Node::at(&server.url(DATABASE)).await;
    for user in ["postgres:seekrit", "postgres"] {
        let url = format!("postgres://{user}@{}/{DATABASE}", server.address());
        let error = refused(&url).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
        assert!(!format!("{error} {error:?}").contains("seekrit"));
    }
    let error = refused(&server.url("nowhere")).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
}

/// How a pooler handles what a client asks for at startup.
#[derive(Clone, Copy)]
enum Pooler {
    /// As PgBouncer does unless told otherwise.
    RefusesOptions,
    /// As PgBouncer does with `ignore_startup_parameters = options`.
    DropsOptions,
}

/// Something between clients and a server that treats startup options as a pooler does.
async fn pooler(server: SocketAddr, kind: Pooler) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    runtime().spawn(Box::pin(async move {
        while let Ok((client, _)) = listener.accept().await {
            runtime().spawn(Box::pin(async move {
                // The client has left, one way or the other.
                drop(serve(client, server, kind).await);
            }));
        }
    }));
    address
}

async fn serve(mut client: TcpStream, server: SocketAddr, kind: Pooler) -> std::io::Result<()> {
    let length = client.read_u32().await?;
    let mut startup = vec![0; usize::try_from(length).expect("few") - 4];
    client.read_exact(&mut startup).await?;
    match kind {
        Pooler::RefusesOptions => {
            let fields = b"SERROR\0VERROR\0C08P01\0Munsupported startup parameter: options\0\0";
            client.write_u8(b'E').await?;
            client
                .write_u32(u32::try_from(fields.len() + 4).expect("few"))
                .await?;
            client.write_all(fields).await
        }
        Pooler::DropsOptions => {
            let (version, texts) = startup.split_at(4);
            let texts: Vec<_> = texts.split(|byte| *byte == 0).collect();
            let mut kept = version.to_vec();
            for pair in texts
                .chunks(2)
                .filter(|pair| pair.len() == 2 && !pair[0].is_empty())
            {
                if pair[0] != b"options" {
                    kept.extend([pair[0], &[0], pair[1], &[0]].concat());
                }
            }
            kept.push(0);
            let mut server = TcpStream::connect(server).await?;
            server
                .write_u32(u32::try_from(kept.len() + 4).expect("few"))
                .await?;
            server.write_all(&kept).await?;
            tokio::io::copy_bidirectional(&mut client, &mut server).await?;
            Ok(())
        }
    }
}

/// P40, backends test 59: behind something that keeps startup options from the server nothing is
/// done, and the error says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_is_refused() {
    let server = server().await;
    let address = server.address().parse().unwrap();
    for kind in [Pooler::RefusesOptions, Pooler::DropsOptions] {
        let pooler = pooler(address, kind).await;
        let error = refused(&url_of(&[pooler.to_string()])).await;
        assert_eq!(error.kind(), ErrorKind::Incompatible, "{error:?}");
        let told = error.to_string();
        assert!(told.contains("PgBouncer"), "{told}");
    }
}

/// P18, F-8, backends test 48: whatever role and database have as defaults, calls run as they must.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_of_role_and_database_do_not_matter() {
    let server = server().await;
    server
        .psql(
            DATABASE,
            "ALTER ROLE postgres SET default_transaction_isolation = 'serializable';
             ALTER ROLE postgres SET statement_timeout = 1;
             ALTER ROLE postgres SET lock_timeout = 1;
             ALTER DATABASE app SET default_transaction_read_only = on;
             ALTER ROLE postgres SET synchronous_commit = off;
             ALTER ROLE postgres SET search_path = 'nowhere'",
        )
        .unwrap();
    let (one, two) = (
        Node::at(&server.url(DATABASE)).await,
        Node::at(&server.url(DATABASE)).await,
    );
    let key = key("nightly");
    for round in 0..20 {
        let (holder, other) = if round % 2 == 0 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        let grant = holder.acquire(&key).await;
        let (refused, extended) = tokio::join!(
            other.insert(&key, attempt(), Queue::Never),
            holder.store.extend(&key, grant.token),
        );
        assert!(matches!(refused, Ok(InsertOutcome::Held(_))), "{refused:?}");
        assert!(extended.unwrap().is_some());
        assert!(holder.release(&grant).await.unwrap());
    }
}

/// More callers than connections: all are served, by no more connections than there may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_connections_are_made_than_there_may_be() {
    let server = server().await;
    let node = Node::at(&format!("{}?connections=3", server.url(DATABASE))).await;
    let calls = (0..60).map(async |number| {
        let grant = node.acquire(&key(&format!("key {number}"))).await;
        node.release(&grant).await.unwrap()
    });
    let released = futures_util::future::join_all(calls).await;
    assert!(released.into_iter().all(|released| released));
    assert!(stage::backends(&server, "true") <= 3);
}
