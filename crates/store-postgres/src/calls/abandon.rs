use lock_spi::{AttemptId, LockKey, Namespace, SessionId};
use sqlx::postgres::PgRow;

use super::row::{Answered, Wake, only, uuid, wake};
use crate::client::{Call, Query};

pub(crate) struct Abandon<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) key: &'a LockKey,
    pub(crate) session: SessionId,
    pub(crate) attempt: AttemptId,
}

impl Call for Abandon<'_> {
    type Reply = Option<Wake>;

    const SQL: &'static str = "SELECT * FROM dlock.abandon_1($1, $2, $3, $4, $5)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.key.as_str())
            .bind(self.session.as_i64())
            .bind(uuid(self.attempt.as_u128()))
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Option<Wake>> {
        wake(only(rows)?)
    }
}
