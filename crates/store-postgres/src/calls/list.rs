use lock_spi::{FencingToken, Holder, KeyPrefix, LockKey, Namespace};
use sqlx::postgres::PgRow;

use super::row::{Answered, HolderColumns, column, key, token};
use crate::client::{Call, Query};

/// One window of the lock rows below a prefix.
pub(crate) struct List<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) prefix: &'a KeyPrefix,
    pub(crate) after: Option<&'a LockKey>,
    pub(crate) limit: i32,
}

/// What stands in a window.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) held: Vec<(LockKey, Option<FencingToken>, Holder)>,
    /// The last row of the window, when there are more behind it.
    pub(crate) next: Option<LockKey>,
}

impl Call for List<'_> {
    type Reply = Listed;

    const SQL: &'static str = "SELECT * FROM dlock.list_1($1, $2, $3, $4)";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.prefix.as_str())
            .bind(self.after.map(LockKey::as_str))
            .bind(self.limit)
    }

    fn read(rows: &[PgRow]) -> Answered<Listed> {
        let mut listed = Listed::default();
        for row in rows {
            let key = key(row, "lock_key")?;
            if column(row, "more")? {
                listed.next = Some(key.clone());
            }
            let held: bool = column(row, "held")?;
            if held && let Some(holder) = HolderColumns::PLAIN.read(row)? {
                listed.held.push((key, token(row, "floor")?, holder));
            }
        }
        Ok(listed)
    }
}
