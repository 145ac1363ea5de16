//! One server for all tests of this binary, and a fresh database for each of them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use store_postgres::schema;
use test_servers::Postgres;

use super::caller::Caller;

/// The database that the others are copies of.
const TEMPLATE: &str = "migrated";

fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Postgres::builder()
            .setting("max_connections", "200")
            .setting("log_line_prefix", "%d ")
            .start()
            .unwrap();
        server.create_database(TEMPLATE).unwrap();
        server.psql(TEMPLATE, &schema::sql()).unwrap();
        server
    })
}

fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A database with the schema in it.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
}

impl Database {
    /// With the schema as it is.
    pub(crate) fn new() -> Self {
        // A copy is refused while another is being made.
        static COPYING: Mutex<()> = Mutex::new(());
        let database = Self { name: next_name() };
        let server = server();
        let _one_at_a_time = COPYING.lock();
        server
            .create_database_from(&database.name, TEMPLATE)
            .unwrap();
        // The first connection notes that the data has moved.
        database.psql("SELECT dlock.attach_1()");
        database
    }

    /// With the schema as these replacements leave it. Each has to find its text exactly once.
    pub(crate) fn with(replacements: &[(&str, &str)]) -> Self {
        let database = Self { name: next_name() };
        let mut sql = schema::sql();
        for (found, put) in replacements {
            assert_eq!(sql.matches(found).count(), 1, "{found}");
            sql = sql.replace(found, put);
        }
        server().create_database(&database.name).unwrap();
        // What replaces something may need functions of its own, which must be there before it.
        database.psql(super::stress::SLOWED);
        database.psql(&sql);
        database
    }

    /// Runs statements as the superuser.
    pub(crate) fn psql(&self, sql: &str) -> String {
        server().psql(&self.name, sql).unwrap()
    }

    /// What the server logged for this database.
    pub(crate) fn log(&self) -> String {
        let mut ours = false;
        let log = server().log().unwrap();
        let lines = log.lines().filter(|line| {
            // A line that begins with a tab goes on with the entry before it.
            ours = line.starts_with(&format!("{} ", self.name)) || (ours && line.starts_with('\t'));
            ours
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// A connection of the superuser.
    pub(crate) async fn connect(&self) -> Caller {
        Caller::new(
            PgConnection::connect(&server().url(&self.name))
                .await
                .unwrap(),
        )
        .await
    }

    /// A connection of another role, whose name takes no quotes.
    pub(crate) async fn connect_as(&self, role: &str) -> Caller {
        let url = server()
            .url(&self.name)
            .replace("postgres@", &format!("{role}@"));
        Caller::new(PgConnection::connect(&url).await.unwrap()).await
    }

    /// Several connections of the superuser.
    pub(crate) async fn callers<const N: usize>(&self) -> [Caller; N] {
        let mut callers = Vec::new();
        for _ in 0..N {
            callers.push(self.connect().await);
        }
        callers.try_into().unwrap()
    }

    /// Makes a role that may log in; its name, which no other database uses.
    pub(crate) fn role(&self, what: &str) -> String {
        let name = format!("{what}_{}", self.name);
        self.psql(&format!("CREATE ROLE {name} LOGIN"));
        name
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Runs statements that tests have put together themselves.
pub(super) async fn run(connection: &mut PgConnection, sql: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await?;
    Ok(())
}
