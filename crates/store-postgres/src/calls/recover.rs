use std::time::Duration;

use lock_spi::{FencingToken, Namespace, RecoverRequest};
use sqlx::postgres::PgRow;

use super::row::{Answered, column, milliseconds, only, uuid};
use crate::client::{Call, Query};

pub(crate) struct Recover<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) request: &'a RecoverRequest,
}

#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) term: i64,
    pub(crate) closed_for: Duration,
}

impl Call for Recover<'_> {
    type Reply = Recovered;

    const SQL: &'static str = "SELECT * FROM dlock.recover_1($1, $2, $3, $4, $5)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        let RecoverRequest {
            id,
            above,
            hold_off,
        } = self.request;
        let hold_off = i64::try_from(hold_off.as_millis()).unwrap_or(i64::MAX);
        query
            .bind(self.namespace.as_str())
            .bind(uuid(id.as_u128()))
            .bind(above.map(FencingToken::as_i64))
            .bind(hold_off)
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Recovered> {
        let row = only(rows)?;
        Ok(Recovered {
            term: column(row, "term")?,
            closed_for: milliseconds(row, "closed_ms")?.unwrap_or_default(),
        })
    }
}
