//! The schema `dlock`: what it has to be, how it is made, and who may use it.
//!
//! A program in production need not, and should not, be able to change it: an operator applies
//! [`sql`] once, or [`sql_since`] later, by whatever tool, and [`grants`] for each role. Where that
//! is too much, [`migrate`] does the first two.
//!
//! # Examples
//!
//! ```
//! use store_postgres::schema::{self, Role};
//!
//! let text = schema::sql() + &schema::grants(Role::Application, "billing");
//! assert!(text.contains(r#"TO "billing""#));
//! ```

mod migrations;

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Effect, Elapsed, Migration, Result};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use self::migrations::{HISTORY, MIGRATIONS, Step};
use crate::client::PostgresClient;
use crate::error::{Failure, Phase, incompatible, task_lost, timed_out};

/// The format that this build speaks.
pub const WANTED: u32 = 1;

/// Whoever migrates holds this lock until the end of the transaction.
const LOCK: &str = "SELECT pg_catalog.pg_advisory_xact_lock(7235409881223054)";
/// How long a migration may take, with the one that it has to wait for.
const LIMIT: Duration = Duration::from_secs(60);

/// What somebody may do with the locks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Role {
    /// Everything that a client of the locks does, revoking included.
    Application,
    /// Clearing what is dead.
    Reaper,
}

/// What clients call.
pub(crate) const APPLICATION: [&str; 19] = [
    "abandon_1",
    "adopt_session_1",
    "attach_1",
    "close_session_1",
    "diagnose_1",
    "extend_1",
    "keep_alive_1",
    "list_1",
    "look_1",
    "open_session_1",
    "read_1",
    "release_1",
    "release_many_1",
    "revocations_1",
    "revoke_1",
    "sessions_1",
    "try_insert_1",
    "try_insert_many_1",
    "waiters_1",
];
/// What clears up.
const REAPER: [&str; 2] = ["attach_1", "reap_1"];

/// The statements that let a role of the database use the locks. Recovering is left to the owner of
/// the schema.
#[must_use]
pub fn grants(role: Role, name: &str) -> String {
    let name = format!("\"{}\"", name.replace('"', "\"\""));
    let functions: &[&str] = match role {
        Role::Application => &APPLICATION,
        Role::Reaper => &REAPER,
    };
    let mut text = format!("GRANT USAGE ON SCHEMA dlock TO {name};\n");
    for function in functions {
        text += &format!("GRANT EXECUTE ON FUNCTION dlock.{function} TO {name};\n");
    }
    text
}

/// Everything that makes the schema in a database that has none, as one transaction.
#[must_use]
pub fn sql() -> String {
    sql_since(0)
}

/// Everything that brings the schema from a format up to the one that this build speaks, as one
/// transaction; nothing when it is there.
#[must_use]
pub fn sql_since(version: u32) -> String {
    let mut steps = MIGRATIONS
        .iter()
        .filter(|step| step.version > version)
        .peekable();
    if steps.peek().is_none() {
        return String::new();
    }
    let mut text = format!("BEGIN;\n{LOCK};\n");
    for step in steps {
        text += &step.script();
    }
    text + "COMMIT;\n"
}

/// Compares the format in the database with the one that this build speaks.
///
/// # Errors
///
/// `Denied` for a role that may not use the schema; otherwise those of every call. The effect is
/// `None`.
///
/// # Cancel safety
///
/// Nothing to compensate.
pub async fn inspect(client: &PostgresClient) -> Result<Migration> {
    to_its_end(client, |mut connection| async move {
        let found = found(&mut connection).await?;
        Ok(Migration {
            found,
            wanted: WANTED,
        })
    })
    .await
    .map_err(|error| error.with_effect(Effect::None))
}

/// Brings the schema up to the format that this build speaks, on a connection of its own and in one
/// transaction. Several at once are fine, and so are an application's own migrations. It takes the
/// rights of an owner of the schema, unless there is nothing to do.
///
/// # Errors
///
/// `Incompatible` when the stored format is newer than this build's, or was made of another text;
/// `Denied` without the rights; otherwise those of every call.
///
/// # Cancel safety
///
/// It runs to its end, and may be repeated.
pub async fn migrate(client: &PostgresClient) -> Result<Migration> {
    to_its_end(client, |mut connection| async move {
        let connection = &mut connection;
        let mut now = found(connection).await?;
        if now != Some(WANTED) {
            now = bring_up(connection).await?;
        }
        match now {
            Some(WANTED) => Ok(Migration {
                found: now,
                wanted: WANTED,
            }),
            Some(newer) => Err(incompatible(format!(
                "the locks in this database are of format {newer}, and this build speaks {WANTED}"
            ))),
            None => Err(incompatible("the migration left nothing behind")),
        }
    })
    .await
}

/// The format in the database, asked in a way that any role may.
async fn found(connection: &mut PgConnection) -> Result<Option<u32>> {
    const EXISTS: &str = "SELECT pg_catalog.to_regprocedure('dlock.attach_1()') IS NOT NULL AS it";
    const FORMAT: &str = "SELECT format FROM dlock.attach_1()";
    let exists: bool = value(connection, EXISTS, "it").await?;
    if !exists {
        return Ok(None);
    }
    let format: i32 = value(connection, FORMAT, "format").await?;
    Ok(Some(u32::try_from(format).unwrap_or(0)))
}

/// Applies what is missing; answers with the format after that.
async fn bring_up(connection: &mut PgConnection) -> Result<Option<u32>> {
    execute(connection, "BEGIN".into()).await?;
    execute(connection, LOCK.into()).await?;
    let applied = applied(connection).await?;
    if let Some(version) = altered_among(&applied).next() {
        return Err(incompatible(format!(
            "migration {version} of the locks was applied with another text than this build has"
        )));
    }
    let last = applied.last().map_or(0, |(version, _)| *version);
    for step in MIGRATIONS.iter().filter(|step| step.version > last) {
        execute(connection, step.script()).await?;
    }
    execute(connection, "COMMIT".into()).await?;
    found(connection).await
}

/// The migrations that were applied with another text than this build has; none for a role that may
/// not know.
pub(crate) async fn altered(connection: &mut PgConnection) -> Result<Vec<u32>> {
    const READABLE: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = 'dlock' AND c.relname = 'migrations' \
         AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
         AND pg_catalog.has_table_privilege(c.oid, 'SELECT')) AS it";
    let readable: bool = value(connection, READABLE, "it").await?;
    if !readable {
        return Ok(Vec::new());
    }
    let applied = applied(connection).await?;
    Ok(altered_among(&applied).collect())
}

fn altered_among(applied: &[(u32, String)]) -> impl Iterator<Item = u32> {
    let altered = applied.iter().filter(|(version, checksum)| {
        let known = MIGRATIONS.iter().find(|step| step.version == *version);
        known.is_some_and(|step| step.checksum() != *checksum)
    });
    altered.map(|(version, _)| *version)
}

async fn applied(connection: &mut PgConnection) -> Result<Vec<(u32, String)>> {
    const EXISTS: &str = "SELECT pg_catalog.to_regclass('dlock.migrations') IS NOT NULL AS it";
    const APPLIED: &str = "SELECT version, checksum FROM dlock.migrations ORDER BY version";
    let exists: bool = value(connection, EXISTS, "it").await?;
    if !exists {
        return Ok(Vec::new());
    }
    let rows = sqlx::raw_sql(APPLIED).fetch_all(connection).await;
    let rows = rows.map_err(failed)?;
    let read = |row: &sqlx::postgres::PgRow| {
        let version: i32 = row.try_get("version")?;
        Ok((
            u32::try_from(version).unwrap_or(0),
            row.try_get("checksum")?,
        ))
    };
    let applied: Result<_, sqlx::Error> = rows.iter().map(read).collect();
    Ok(applied.map_err(failed)?)
}

async fn value<T>(connection: &mut PgConnection, sql: &'static str, column: &str) -> Result<T>
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    let row = sqlx::raw_sql(sql).fetch_one(connection).await;
    let value = row.and_then(|row| row.try_get(column));
    Ok(value.map_err(failed)?)
}

async fn execute(connection: &mut PgConnection, sql: String) -> Result<()> {
    // Made of this crate's own text and numbers.
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    done.map_err(failed)?;
    Ok(())
}

fn failed(error: sqlx::Error) -> Failure {
    Failure::new(Phase::Calling, error)
}

/// Does something on a connection that is closed afterwards, with whatever it left open.
async fn to_its_end<T, F>(
    client: &PostgresClient,
    act: impl FnOnce(PgConnection) -> F + Send + 'static,
) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let runtime = Arc::clone(client.runtime());
    let (client, clock) = (client.clone(), Arc::clone(&runtime));
    let task = runtime.run_to_end(async move {
        let connection = client.dedicated(LIMIT).await?;
        let done = clock.timeout(LIMIT, act(connection)).await;
        done.unwrap_or_else(|Elapsed| Err(timed_out(Effect::Unknown)))
    });
    task.await.map_err(task_lost)?
}

impl Step {
    /// The step itself, and its entry in the history.
    fn script(&self) -> String {
        let Self { version, .. } = self;
        let checksum = self.checksum();
        let mut text = String::new();
        for part in self.parts {
            text += part;
            text.push('\n');
        }
        text += HISTORY;
        text + &format!(
            "INSERT INTO dlock.migrations (version, checksum) VALUES ({version}, '{checksum}');\n"
        )
    }

    /// FNV-1a of all parts: told apart by accident, not by intent.
    fn checksum(&self) -> String {
        let bytes = self.parts.iter().flat_map(|part| part.bytes());
        let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{sum:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_migration_makes_what_this_build_speaks() {
        let versions: Vec<_> = MIGRATIONS.iter().map(|step| step.version).collect();
        let expected: Vec<_> = (1..=WANTED).collect();
        assert_eq!(versions, expected);
        assert_eq!(sql_since(WANTED), "");
        let text = sql();
        assert!(text.starts_with("BEGIN;") && text.ends_with("COMMIT;\n"));
        assert!(text.contains("CREATE SCHEMA IF NOT EXISTS dlock;"));
    }

    #[test]
    fn names_of_roles_are_quoted() {
        let text = grants(Role::Application, "a\"b; DROP");
        assert!(text.contains("TO \"a\"\"b; DROP\";"), "{text}");
        assert!(!text.contains("reap_1") && !text.contains("recover_1"));
        assert!(grants(Role::Reaper, "r").contains("dlock.reap_1 TO \"r\""));
    }

    #[test]
    fn every_function_that_may_be_called_belongs_to_somebody() {
        let text = sql();
        let mut found = 0;
        for function in text.split("CREATE FUNCTION dlock.").skip(1) {
            let (name, rest) = function.split_once('(').unwrap();
            let head = rest.split("AS $f$").next().unwrap();
            let public = head.contains("SECURITY DEFINER");
            let granted = APPLICATION.contains(&name) || REAPER.contains(&name);
            assert_eq!(public, granted || name == "recover_1", "{name}");
            found += usize::from(public);
        }
        assert_eq!(
            found,
            APPLICATION.len() + 2,
            "reap_1 and recover_1 are the others"
        );
    }

    #[test]
    fn a_changed_text_has_another_checksum() {
        let step = |part| Step {
            version: 1,
            parts: part,
        };
        assert_eq!(step(&[]).checksum(), "cbf29ce484222325");
        assert_ne!(step(&["a"]).checksum(), step(&["b"]).checksum());
    }
}
