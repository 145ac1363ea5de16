use std::time::Duration;

use lock_spi::{FencingToken, LockKey, Namespace, SessionId};
use sqlx::postgres::PgRow;

use super::row::{Answered, milliseconds, only, required, session_id};
use crate::client::{Call, Query};

pub(crate) struct Extend<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) key: &'a LockKey,
    pub(crate) token: FencingToken,
}

#[derive(Debug)]
pub(crate) struct Extended {
    pub(crate) session: SessionId,
    pub(crate) remaining: Duration,
}

impl Call for Extend<'_> {
    /// `None`: gone for good.
    type Reply = Option<Extended>;

    const SQL: &'static str = "SELECT * FROM dlock.extend_1($1, $2, $3, $4)";
    const URGENT: bool = true;

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.key.as_str())
            .bind(self.token.as_i64())
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Option<Extended>> {
        let row = only(rows)?;
        let Some(remaining) = milliseconds(row, "remaining_ms")? else {
            return Ok(None);
        };
        let session = required(session_id(row, "session")?, "session")?;
        Ok(Some(Extended { session, remaining }))
    }
}
