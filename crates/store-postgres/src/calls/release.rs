use lock_spi::{FencingToken, LockKey, Namespace};
use sqlx::postgres::PgRow;

use super::row::{Answered, Wake, column, only, wake};
use crate::client::{Call, Query};

pub(crate) struct Release<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) ending: &'a Ending,
}

/// The grant that a release ends.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) key: LockKey,
    pub(crate) token: FencingToken,
    /// No request of the grant's attempt can arrive any more, so that it need not be remembered.
    pub(crate) settled: bool,
}

#[derive(Debug)]
pub(crate) struct Released {
    pub(crate) released: bool,
    pub(crate) wake: Option<Wake>,
}

impl Call for Release<'_> {
    type Reply = Released;

    const SQL: &'static str = "SELECT * FROM dlock.release_1($1, $2, $3, $4, $5)";

    // A second copy answers that there was nothing to end, whatever the first one did.
    const REPEATABLE: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.ending.key.as_str())
            .bind(self.ending.token.as_i64())
            .bind(self.ending.settled)
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Released> {
        let row = only(rows)?;
        Ok(Released {
            released: column(row, "released")?,
            wake: wake(row)?,
        })
    }
}
