//! What is asked on every new connection before anything else: whether it leads to the server, and
//! whether the locks there are those that this build speaks of.

use lock_spi::{Effect, Error, ErrorKind, Result};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use crate::error::{Failure, Phase, incompatible};
use crate::schema::WANTED;

/// The name of the setting that bears the mark of a connection.
pub(super) const MARK: &str = "dlock.connection";

const PROBE: &str = "SELECT pg_catalog.pg_backend_pid() AS backend, \
     pg_catalog.current_setting('dlock.connection', true) AS mark";
const ATTACH: &str = "SELECT a.format, a.in_recovery, a.problem, a.warning, \
     pg_catalog.pg_backend_pid() AS backend FROM dlock.attach_1() a";

/// What an operator should know, if anything.
pub(super) async fn attach(connection: &mut PgConnection, mark: &str) -> Result<Option<String>> {
    let backend = probe(connection, mark).await?;
    let row = ask(connection, ATTACH).await.map_err(|failure| {
        let missing = failure.kind == ErrorKind::Incompatible;
        let error = Error::from(failure);
        match missing {
            true => no_schema(error),
            false => error,
        }
    })?;
    let attached = read(&row).map_err(|error| Error::from(Failure::new(Phase::Connecting, error)));
    let Attached {
        format,
        in_recovery,
        problem,
        warning,
        backend: now,
    } = attached?;
    if now != backend {
        return Err(pooled(
            "two statements on it went to two servers' processes",
        ));
    }
    if u32::try_from(format) != Ok(WANTED) {
        return Err(incompatible(format!(
            "the locks in this database are of format {format}, and this build speaks {WANTED}; \
             {}",
            match format < i32::try_from(WANTED).unwrap_or(i32::MAX) {
                true =>
                    "migrate them: StoreAdmin::migrate, store_postgres::schema::migrate, or \
                         the text of store_postgres::schema::sql_since",
                false => "update the program",
            }
        )));
    }
    if in_recovery {
        let message = "the server is a standby";
        return Err(Error::new(ErrorKind::NotLeader, Effect::None, message));
    }
    match problem {
        Some(problem) => Err(incompatible(problem)),
        None => Ok(warning),
    }
}

/// Finds out whether a pooler is in between: it takes startup options away, or gives each statement
/// to another process. One message each, so that it can do no harm even then.
pub(super) async fn probe(connection: &mut PgConnection, mark: &str) -> Result<i32> {
    let row = ask(connection, PROBE).await?;
    let told = |error| Error::from(Failure::new(Phase::Connecting, error));
    let seen: Option<String> = row.try_get("mark").map_err(told)?;
    if seen.as_deref() != Some(mark) {
        return Err(pooled("its startup options did not reach the server"));
    }
    row.try_get("backend").map_err(told)
}

struct Attached {
    format: i32,
    in_recovery: bool,
    problem: Option<String>,
    warning: Option<String>,
    backend: i32,
}

fn read(row: &PgRow) -> Result<Attached, sqlx::Error> {
    Ok(Attached {
        format: row.try_get("format")?,
        in_recovery: row.try_get("in_recovery")?,
        problem: row.try_get("problem")?,
        warning: row.try_get("warning")?,
        backend: row.try_get("backend")?,
    })
}

/// Asks in one message, with nothing prepared.
async fn ask(connection: &mut PgConnection, sql: &'static str) -> Result<PgRow, Failure> {
    let row = sqlx::raw_sql(sql).fetch_one(connection).await;
    row.map_err(|error| Failure::new(Phase::Connecting, error))
}

fn no_schema(source: Error) -> Error {
    incompatible(format!(
        "there are no locks of format {WANTED} in this database; make them: \
         store_postgres::schema::migrate, StoreAdmin::migrate, or the text of \
         store_postgres::schema::sql"
    ))
    .with_source(source)
}

/// The error of a connection that does not lead to one process of the server.
pub(super) fn pooled(how: &str) -> Error {
    incompatible(format!(
        "the connection does not lead to the server itself: {how}; locks need a direct connection, \
         not a pooler such as PgBouncer"
    ))
}
