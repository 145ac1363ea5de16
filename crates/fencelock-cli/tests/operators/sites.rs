//! One server of each kind for all tests, and a namespace for each of them.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use test_servers::{Etcd, Postgres};

use crate::command::run;

pub(crate) const DATABASE: &str = "app";

static ETCD: LazyLock<Etcd> = LazyLock::new(|| Etcd::start().expect("a server of etcd"));

static POSTGRES: LazyLock<Postgres> = LazyLock::new(|| {
    let server = Postgres::start().expect("a server of Postgres");
    with_schema(&server);
    server
});

/// Makes the database with what the locks need, as its operator would.
pub(crate) fn with_schema(server: &Postgres) {
    server.create_database(DATABASE).expect("a database");
    run(&server.url(DATABASE), &["migrate"]).data();
}

/// A namespace in a store.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// For names of snapshots.
    pub(crate) name: &'static str,
    pub(crate) url: String,
}

pub(crate) fn etcd_url(server: &Etcd) -> String {
    format!("etcd://{}", server.endpoints().join(","))
}

/// Does the test in a new namespace of each store.
pub(crate) fn on_each(test: impl Fn(&Site)) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    for (name, url) in [
        ("etcd", etcd_url(&ETCD)),
        ("postgres", POSTGRES.url(DATABASE)),
    ] {
        let url = format!("{url}?namespace=t{number}");
        test(&Site { name, url });
    }
}

impl Site {
    /// Runs a command there.
    pub(crate) fn run(&self, arguments: &[&str]) -> crate::command::Ended {
        run(&self.url, arguments)
    }
}
