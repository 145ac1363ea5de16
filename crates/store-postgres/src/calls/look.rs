use std::time::Duration;

use lock_spi::{AttemptId, FencingToken, LockKey, Namespace, SessionId};
use sqlx::postgres::PgRow;

use super::row::{Answered, column, milliseconds, only, token, uuid};
use crate::client::{Call, Query};

/// What an attempt that waits has to know.
pub(crate) struct Look<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) key: &'a LockKey,
    pub(crate) session: SessionId,
    pub(crate) attempt: AttemptId,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sight {
    pub(crate) session_stands: bool,
    pub(crate) has_place: bool,
    /// It has a place, and nobody who lives has one before it.
    pub(crate) first: bool,
    /// Somebody has a place.
    pub(crate) anybody: bool,
    pub(crate) holder: Option<FencingToken>,
    pub(crate) attempt_holds: bool,
    /// Of the holder.
    pub(crate) remaining: Option<Duration>,
}

impl Call for Look<'_> {
    type Reply = Sight;

    const SQL: &'static str = "SELECT * FROM dlock.look_1($1, $2, $3, $4)";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.key.as_str())
            .bind(self.session.as_i64())
            .bind(uuid(self.attempt.as_u128()))
    }

    fn read(rows: &[PgRow]) -> Answered<Sight> {
        let row = only(rows)?;
        let flag = |name| column::<Option<bool>>(row, name).map(|flag| flag.unwrap_or(false));
        Ok(Sight {
            session_stands: flag("session_stands")?,
            has_place: column::<Option<i64>>(row, "place")?.is_some(),
            first: flag("first")?,
            anybody: flag("anybody")?,
            holder: token(row, "token")?,
            attempt_holds: flag("attempt_holds")?,
            remaining: milliseconds(row, "remaining_ms")?,
        })
    }
}
