//! What only operators ask.

use lock_spi::{LockKey, Namespace, Place, SessionId, SessionInfo, Severity, Ttl, WaiterInfo};
use sqlx::postgres::PgRow;

use super::row::{
    Answered, attempt_id, column, count, milliseconds, nonsense, only, owner, required, session_id,
    unexpected,
};
use crate::client::{Call, Query};

/// The sessions behind one, in the order of their ids.
pub(crate) struct ListSessions<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) after: Option<SessionId>,
    pub(crate) limit: i32,
}

impl Call for ListSessions<'_> {
    type Reply = Vec<SessionInfo>;

    const SQL: &'static str = "SELECT * FROM dlock.sessions_1($1, $2, $3)";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.after.map(SessionId::as_i64))
            .bind(self.limit)
    }

    fn read(rows: &[PgRow]) -> Answered<Vec<SessionInfo>> {
        rows.iter().map(session).collect()
    }
}

fn session(row: &PgRow) -> Answered<SessionInfo> {
    let ttl = required(milliseconds(row, "ttl_ms")?, "ttl")?;
    Ok(SessionInfo {
        session: required(session_id(row, "session")?, "session")?,
        owner: required(owner(row, "owner")?, "owner")?,
        ttl: Ttl::new(ttl).map_err(nonsense)?,
        opened_at: required(milliseconds(row, "opened_at_ms")?, "time of opening")?,
        remaining: milliseconds(row, "remaining_ms")?,
    })
}

/// The places of a key, first in line first.
pub(crate) struct ListWaiters<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) key: &'a LockKey,
}

impl Call for ListWaiters<'_> {
    type Reply = Vec<WaiterInfo>;

    const SQL: &'static str = "SELECT * FROM dlock.waiters_1($1, $2)";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query.bind(self.namespace.as_str()).bind(self.key.as_str())
    }

    fn read(rows: &[PgRow]) -> Answered<Vec<WaiterInfo>> {
        rows.iter().map(waiter).collect()
    }
}

fn waiter(row: &PgRow) -> Answered<WaiterInfo> {
    let position: Option<i64> = column(row, "place")?;
    Ok(WaiterInfo {
        attempt: required(attempt_id(row, "attempt")?, "attempt")?,
        session: required(session_id(row, "session")?, "session")?,
        owner: required(owner(row, "owner")?, "owner")?,
        place: Place {
            position: required(position, "place")?.unsigned_abs(),
            ahead: count(row, "ahead")?,
        },
        queued_at: required(milliseconds(row, "queued_at_ms")?, "time of queueing")?,
    })
}

/// Looks for what is wrong with the database.
pub(crate) struct Diagnose;

/// A finding as the database tells it.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    pub(crate) id: String,
    pub(crate) severity: Severity,
    pub(crate) what: String,
    pub(crate) what_to_do: String,
}

impl Call for Diagnose {
    type Reply = Vec<Diagnosis>;

    const SQL: &'static str = "SELECT * FROM dlock.diagnose_1()";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query
    }

    fn read(rows: &[PgRow]) -> Answered<Vec<Diagnosis>> {
        rows.iter().map(diagnosis).collect()
    }
}

fn diagnosis(row: &PgRow) -> Answered<Diagnosis> {
    let severity = match column(row, "severity")? {
        "note" => Severity::Note,
        "warning" => Severity::Warning,
        "critical" => Severity::Critical,
        other => return Err(unexpected(format!("a severity of {other:?}"))),
    };
    Ok(Diagnosis {
        id: column(row, "id")?,
        severity,
        what: column(row, "what")?,
        what_to_do: column(row, "what_to_do")?,
    })
}

/// The format of what is stored.
pub(crate) struct Format;

impl Call for Format {
    type Reply = i32;

    const SQL: &'static str = "SELECT format FROM dlock.attach_1()";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query
    }

    fn read(rows: &[PgRow]) -> Answered<i32> {
        column(only(rows)?, "format")
    }
}
