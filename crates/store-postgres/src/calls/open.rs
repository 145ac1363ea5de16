use std::time::Duration;

use lock_spi::{Namespace, Owner, SessionId, Ttl};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::row::{Answered, column, milliseconds, only, required, unexpected};
use crate::client::{Call, Query};

pub(crate) struct Open<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) session: SessionId,
    pub(crate) instance: Uuid,
    pub(crate) owner: &'a Owner,
    pub(crate) ttl: Ttl,
}

#[derive(Debug)]
pub(crate) enum Opened {
    Open(Duration),
    /// Closed, or expired.
    Gone,
    /// Another store object's.
    Foreign,
    /// The namespace is closed for its recovery.
    Closed,
}

impl Call for Open<'_> {
    type Reply = Opened;

    const SQL: &'static str = "SELECT * FROM dlock.open_session_1($1, $2, $3, $4, $5, $6)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        let ttl = i64::try_from(self.ttl.as_duration().as_millis()).unwrap_or(i64::MAX);
        query
            .bind(self.namespace.as_str())
            .bind(self.session.as_i64())
            .bind(self.instance)
            .bind(self.owner.as_str())
            .bind(ttl)
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Opened> {
        let row = only(rows)?;
        Ok(match column(row, "outcome")? {
            "open" => Opened::Open(required(milliseconds(row, "remaining_ms")?, "remaining")?),
            "gone" => Opened::Gone,
            "foreign" => Opened::Foreign,
            "closed" => Opened::Closed,
            other => return Err(unexpected(format!("a session that is {other:?}"))),
        })
    }
}
