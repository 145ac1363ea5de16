use std::time::Duration;

use lock_spi::{Namespace, SessionId, Ttl};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::row::{Answered, milliseconds, nonsense, only, required};
use crate::client::{Call, Query};

pub(crate) struct Adopt<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) session: SessionId,
    pub(crate) instance: Uuid,
}

/// A session that was taken over, and what is left of it.
#[derive(Debug)]
pub(crate) struct Adopted {
    pub(crate) ttl: Ttl,
    pub(crate) remaining: Duration,
}

impl Call for Adopt<'_> {
    /// `None`: the session is gone.
    type Reply = Option<Adopted>;

    const SQL: &'static str = "SELECT * FROM dlock.adopt_session_1($1, $2, $3, $4)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.session.as_i64())
            .bind(self.instance)
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Option<Adopted>> {
        let row = only(rows)?;
        let Some(remaining) = milliseconds(row, "remaining_ms")? else {
            return Ok(None);
        };
        let ttl: Duration = required(milliseconds(row, "ttl_ms")?, "ttl")?;
        Ok(Some(Adopted {
            ttl: Ttl::new(ttl).map_err(nonsense)?,
            remaining,
        }))
    }
}
