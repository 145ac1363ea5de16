use std::collections::BTreeMap;

use lock_spi::Namespace;
use sqlx::postgres::PgRow;

use super::release::{Ending, Released};
use super::row::{Answered, column, place};
use crate::client::{Call, Query};

/// Releases what has nobody to wake.
pub(crate) struct ReleaseMany<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) endings: &'a [Ending],
}

impl Call for ReleaseMany<'_> {
    /// By the places of the endings.
    type Reply = BTreeMap<usize, Released>;

    const SQL: &'static str = "SELECT * FROM dlock.release_many_1($1, $2, $3, $4, $5)";

    // As of a single release.
    const REPEATABLE: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        let endings = self.endings.iter();
        let keys = endings.clone().map(|ending| ending.key.as_str());
        let tokens = endings.clone().map(|ending| ending.token.as_i64());
        let settled = endings.map(|ending| ending.settled);
        query
            .bind(self.namespace.as_str())
            .bind(keys.collect::<Vec<_>>())
            .bind(tokens.collect::<Vec<_>>())
            .bind(settled.collect::<Vec<_>>())
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Self::Reply> {
        let released = |row| {
            let released = column(row, "released")?;
            Ok((
                place(row)?,
                Released {
                    released,
                    wake: None,
                },
            ))
        };
        rows.iter().map(released).collect()
    }
}
