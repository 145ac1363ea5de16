//! The Postgres store passes the suite on a real server, in real time, with the same faults on the
//! way: as the owner of the schema, and as a role that has no more rights than it was granted. Each
//! scenario has a database of its own.

mod deployment;
mod wire;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use futures_util::{StreamExt, stream};
use lock_spi::{Runtime, TokioRuntime};
use parity_tests::{Fixture, SCENARIOS, Scenario, Verdict};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use store_postgres::schema::{Role, grants};
use test_servers::Postgres;

use crate::deployment::{PostgresDeployment, make_schema, url};

parity_tests::suite!(RealPostgres);

/// One for all scenarios; `template` has the schema, and nothing else.
static SERVER: LazyLock<Postgres> = LazyLock::new(|| {
    let builder = Postgres::builder().setting("max_connections", "300");
    let server = builder.start().expect("a server of Postgres");
    server.create_database("template").expect("a database");
    real_time(async {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
        let address = server.address().parse().expect("an address");
        make_schema(&runtime, &url("postgres", address, "template")).await;
    });
    server
});

struct RealPostgres;

impl Fixture for RealPostgres {
    fn run(scenario: &Scenario) -> Verdict {
        // Made before the runtime, as it has one of its own.
        LazyLock::force(&SERVER);
        real_time(play(scenario, "postgres"))
    }
}

/// P12, backends test 64.
#[test]
fn the_whole_suite_passes_as_a_role_of_few_rights() {
    /// Scenarios wait more than they work.
    const AT_ONCE: usize = 8;
    SERVER
        .psql("postgres", "CREATE ROLE locks LOGIN")
        .expect("a role");
    let rights = [
        grants(Role::Application, "locks"),
        grants(Role::Reaper, "locks"),
        // The suite recovers, which otherwise is the owner's to do.
        "GRANT EXECUTE ON FUNCTION dlock.recover_1 TO locks".to_owned(),
    ];
    let limited = SERVER.create_database_from("limited", "template");
    limited.expect("a database of its own");
    SERVER.psql("limited", &rights.concat()).expect("rights");
    let plays = stream::iter(SCENARIOS).map(async |scenario: &Scenario| {
        let verdict = play(scenario, "locks").await;
        verdict.map_err(|stop| format!("{}: {stop}", scenario.name))
    });
    let verdicts: Vec<_> = real_time(plays.buffer_unordered(AT_ONCE).collect());
    let failed: Vec<_> = verdicts.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn play(scenario: &Scenario, user: &'static str) -> Verdict {
    static DATABASES: AtomicU32 = AtomicU32::new(0);
    let server = &*SERVER;
    let number = DATABASES.fetch_add(1, Ordering::Relaxed);
    let database = format!("parity_{number}");
    let template = match user {
        "postgres" => "template",
        _ => "limited",
    };
    let address = server.address().parse().expect("an address");
    copy_database(&url("postgres", address, "postgres"), &database, template).await;
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let deployment = PostgresDeployment::new(runtime, address, user, database).await;
    scenario.play(Arc::new(deployment)).await
}

/// Not by a program that would block those who play beside.
async fn copy_database(url: &str, name: &str, template: &str) {
    let operator = PgConnection::connect(url).await;
    let mut operator = operator.expect("the server answers");
    let copy = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"));
    let copied = sqlx::raw_sql(copy).execute(&mut operator).await;
    copied.expect("a database of its own");
}

fn real_time<T>(story: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a tokio runtime");
    tokio.block_on(story)
}
