use lock_spi::{FencingToken, Holder, LockKey, Namespace};
use sqlx::postgres::PgRow;

use super::row::{Answered, HolderColumns, count, only, token};
use crate::client::{Call, Query};

pub(crate) struct Read<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) key: &'a LockKey,
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) floor: Option<FencingToken>,
    pub(crate) waiters: Option<u32>,
    pub(crate) holder: Option<Holder>,
}

impl Call for Read<'_> {
    type Reply = Known;

    const SQL: &'static str = "SELECT * FROM dlock.read_1($1, $2)";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query.bind(self.namespace.as_str()).bind(self.key.as_str())
    }

    fn read(rows: &[PgRow]) -> Answered<Known> {
        let row = only(rows)?;
        Ok(Known {
            floor: token(row, "floor")?,
            waiters: count(row, "waiter_count")?,
            holder: HolderColumns::PLAIN.read(row)?,
        })
    }
}
