use lock_spi::{Namespace, SessionId};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::row::{Answered, Wake, wake};
use crate::client::{Call, Query};

pub(crate) struct Close<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) session: SessionId,
    /// It is closed only if it is this store object's: another may have adopted it.
    pub(crate) instance: Uuid,
}

impl Call for Close<'_> {
    type Reply = Vec<Wake>;

    const SQL: &'static str = "SELECT * FROM dlock.close_session_1($1, $2, $3, $4)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        query
            .bind(self.namespace.as_str())
            .bind(self.session.as_i64())
            .bind(lock_ms)
            .bind(self.instance)
    }

    fn read(rows: &[PgRow]) -> Answered<Vec<Wake>> {
        rows.iter()
            .filter_map(|row| wake(row).transpose())
            .collect()
    }
}
