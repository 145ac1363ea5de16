//! Which hosts can be reached, and which of them takes writes.

use lock_spi::{Error, ErrorKind, Finding, Result, Severity};
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::finding;
use crate::client::PostgresClient;
use crate::error::{Failure, Phase};

/// The host that takes writes, or where none does, one that answers.
pub(super) struct Reached {
    pub(super) host: String,
    pub(super) connection: PgConnection,
}

/// Tries every host; `None` when none of them is of use.
pub(super) async fn reach(
    client: &PostgresClient,
    findings: &mut Vec<Finding>,
) -> Result<Option<Reached>> {
    let mut refused = Vec::new();
    let mut standby = None;
    let mut primary = None;
    for (host, connected) in client.connect_to_each().await {
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(error) if error.kind() == ErrorKind::InvalidRequest => return Err(error),
            Err(error) => {
                refused.push((host, error));
                continue;
            }
        };
        let reached = |connection| Some(Reached { host, connection });
        match is_standby(&mut connection).await? {
            true if standby.is_none() => standby = reached(connection),
            false if primary.is_none() => primary = reached(connection),
            _ => {}
        }
    }
    let one_answers = primary.is_some() || standby.is_some();
    findings.extend(
        refused
            .iter()
            .map(|(host, error)| unusable(host, error, one_answers)),
    );
    if primary.is_none() && standby.is_some() {
        findings.push(finding(
            "read_only",
            Severity::Critical,
            "no host that answers takes writes: they are standbys",
            "name the primary in the URL as well, or promote a standby",
        ));
    }
    Ok(primary.or(standby))
}

async fn is_standby(connection: &mut PgConnection) -> Result<bool> {
    const ASK: &str = "SELECT pg_catalog.pg_is_in_recovery() AS standby";
    let row = sqlx::raw_sql(ASK).fetch_one(connection).await;
    let standby = row.and_then(|row| row.try_get("standby"));
    Ok(standby.map_err(|error| Failure::new(Phase::Connecting, error))?)
}

fn unusable(host: &str, error: &Error, one_answers: bool) -> Finding {
    let told = whole(error);
    match error.kind() {
        ErrorKind::Incompatible => finding(
            "pooler",
            Severity::Critical,
            format!("{host}: {told}"),
            "connect to the server itself, or to a pooler in session mode that passes startup \
             options on",
        ),
        ErrorKind::Denied => finding(
            "denied",
            Severity::Critical,
            format!("{host} does not let us in: {told}"),
            "check user, password and database of the URL, sslmode, and the server's pg_hba.conf",
        ),
        _ => finding(
            "unreachable",
            if one_answers {
                Severity::Warning
            } else {
                Severity::Critical
            },
            format!("{host} cannot be reached: {told}"),
            "check that the server runs, its address in the URL, and what stands in between",
        ),
    }
}

/// An error with what it all began with; what stands between the two repeats it.
fn whole(error: &Error) -> String {
    let told = error.to_string();
    let mut first: &dyn std::error::Error = error;
    while let Some(cause) = first.source() {
        first = cause;
    }
    let first = first.to_string();
    match told.contains(&first) {
        true => told,
        false => format!("{told}: {first}"),
    }
}
