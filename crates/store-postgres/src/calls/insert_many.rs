use std::collections::BTreeMap;

use lock_spi::{InsertRequest, Namespace};
use sqlx::postgres::PgRow;

use super::insert::{InsertReply, granted};
use super::row::{Answered, place, uuid};
use crate::client::{Call, Query};

/// Grants what can be granted without any further question.
pub(crate) struct InsertMany<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) requests: &'a [InsertRequest],
}

impl Call for InsertMany<'_> {
    /// By the places of the requests.
    type Reply = BTreeMap<usize, InsertReply>;

    const SQL: &'static str = "SELECT * FROM dlock.try_insert_many_1($1, $2, $3, $4, $5, $6)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        let requests = self.requests.iter();
        let keys: Vec<_> = requests
            .clone()
            .map(|request| request.key.as_str())
            .collect();
        let sessions = requests.clone().map(|request| request.session.as_i64());
        let attempts = requests
            .clone()
            .map(|request| uuid(request.attempt.as_u128()));
        let payloads = requests.map(|request| request.payload.as_bytes());
        query
            .bind(self.namespace.as_str())
            .bind(keys)
            .bind(sessions.collect::<Vec<_>>())
            .bind(attempts.collect::<Vec<_>>())
            .bind(payloads.collect::<Vec<_>>())
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Self::Reply> {
        let granted = |row| {
            let inserted = granted(row)?;
            Ok((
                place(row)?,
                InsertReply {
                    inserted,
                    wake: None,
                },
            ))
        };
        rows.iter().map(granted).collect()
    }
}
