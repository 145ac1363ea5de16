use lock_spi::Namespace;
use sqlx::postgres::PgRow;

use super::row::{Answered, column, count, only};
use crate::client::{Call, Query};

pub(crate) struct Reap<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) limit: i32,
    pub(crate) after: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) struct Reaped {
    pub(crate) cleared: u32,
    /// Where to go on; `None` at the end.
    pub(crate) next: Option<String>,
}

impl Call for Reap<'_> {
    type Reply = Reaped;

    const SQL: &'static str = "SELECT * FROM dlock.reap_1($1, $2, $3, $4)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.limit)
            .bind(self.after)
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Reaped> {
        let row = only(rows)?;
        Ok(Reaped {
            cleared: count(row, "cleared")?.unwrap_or(0),
            next: column(row, "next_key")?,
        })
    }
}
