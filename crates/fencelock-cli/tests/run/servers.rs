//! The stores that locks are kept in.

use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fencelock::spi::{LockInfo, TokioRuntime};
use fencelock::{Client, Guard};
use store_postgres::{PostgresClient, schema};
use test_servers::{Etcd, Postgres, Proxy};

use crate::process::until;
use crate::scratch::PATIENCE;

/// Keeps what the test itself holds.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    builder.build().unwrap()
});

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// A server, and what the test knows of its locks.
pub(crate) struct Server {
    kind: Kind,
    client: Client,
}

enum Kind {
    Etcd(Etcd),
    Postgres(Postgres),
}

/// The least that both servers can keep.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// The same as an option.
pub(crate) const TTL_OPTION: [&str; 2] = ["--ttl", "2s"];

impl Server {
    pub(crate) fn etcd() -> Self {
        Self::with(Kind::Etcd(Etcd::start().expect("a server of etcd")))
    }

    pub(crate) fn postgres() -> Self {
        let server = Postgres::start().expect("a server of Postgres");
        server.create_database("app").expect("a database");
        let config = server.url("app").parse().unwrap();
        block_on(async {
            let client = PostgresClient::new(config, Arc::new(TokioRuntime::current()));
            schema::migrate(&client.unwrap())
                .await
                .expect("the schema is made");
        });
        Self::with(Kind::Postgres(server))
    }

    fn with(kind: Kind) -> Self {
        let url = kind.url(&kind.address());
        let client = block_on(Client::connect(&url)).unwrap();
        Self { kind, client }
    }

    pub(crate) fn url(&self) -> String {
        self.kind.url(&self.kind.address())
    }

    /// A way to it that can be cut.
    pub(crate) fn proxy(&self) -> (Proxy, String) {
        let proxy = Proxy::to(&self.kind.address()).unwrap();
        let url = self.kind.url(&proxy.endpoint());
        (proxy, url)
    }

    pub(crate) fn read(&self, key: &str) -> LockInfo {
        block_on(self.client.admin().read(key)).unwrap()
    }

    pub(crate) fn is_free(&self, key: &str) -> bool {
        self.read(key).holder.is_none()
    }

    /// The lock for the test itself.
    pub(crate) fn hold(&self, key: &str) -> Guard {
        block_on(async { self.client.acquire(key).await }).unwrap()
    }

    pub(crate) fn release(&self, guard: Guard) {
        block_on(guard.release()).unwrap();
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// How many connections clients have to Postgres.
    pub(crate) fn backends(&self) -> usize {
        let Kind::Postgres(server) = &self.kind else {
            panic!("only Postgres tells");
        };
        let count = "SELECT count(*) FROM pg_stat_activity \
                     WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        server.psql("app", count).unwrap().parse().unwrap()
    }

    /// Waits until so many wait for the key.
    #[track_caller]
    pub(crate) fn await_waiters(&self, key: &str, count: u32) {
        until(PATIENCE, "waiter", || {
            (self.read(key).waiter_count == Some(count)).then_some(())
        });
    }
}

impl Kind {
    fn address(&self) -> String {
        match self {
            Self::Etcd(server) => {
                let endpoint = server.endpoints().remove(0);
                endpoint.trim_start_matches("http://").to_owned()
            }
            Self::Postgres(server) => server.address(),
        }
    }

    fn url(&self, address: &str) -> String {
        match self {
            Self::Etcd(_) => format!("etcd://{address}"),
            Self::Postgres(server) => server.url_at(address, "app"),
        }
    }
}
