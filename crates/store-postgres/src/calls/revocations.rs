use std::time::Duration;

use lock_spi::{LockKey, LockOutcome, Namespace, Owner, Reason, RevocationId};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::revoke::outcome;
use super::row::{Answered, column, milliseconds, nonsense, required};
use crate::client::{Call, Query};

/// The records of a key below a serial number, newest first.
pub(crate) struct Revocations<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) key: &'a LockKey,
    pub(crate) below: Option<i64>,
    pub(crate) limit: i32,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) serial: i64,
    pub(crate) id: RevocationId,
    pub(crate) by: Owner,
    pub(crate) reason: Reason,
    pub(crate) at: Duration,
    pub(crate) outcome: LockOutcome,
}

impl Call for Revocations<'_> {
    type Reply = Vec<Record>;

    const SQL: &'static str = "SELECT * FROM dlock.revocations_1($1, $2, $3, $4)";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.key.as_str())
            .bind(self.below)
            .bind(self.limit)
    }

    fn read(rows: &[PgRow]) -> Answered<Vec<Record>> {
        rows.iter().map(record).collect()
    }
}

fn record(row: &PgRow) -> Answered<Record> {
    let id: Uuid = column(row, "id")?;
    Ok(Record {
        serial: column(row, "serial")?,
        id: RevocationId::from_u128(id.as_u128()),
        by: Owner::new(column::<&str>(row, "by")?).map_err(nonsense)?,
        reason: Reason::new(column::<&str>(row, "reason")?).map_err(nonsense)?,
        at: required(milliseconds(row, "at_ms")?, "time")?,
        outcome: outcome(row)?,
    })
}
