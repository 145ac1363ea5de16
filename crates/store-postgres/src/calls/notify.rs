use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::row::{Answered, Wake, column, only, uuid};
use crate::client::{Call, Query};

/// Tells waiters that it is their turn to look. A statement of its own: whoever notifies in the
/// transaction that did something holds up every other one that does, in all databases.
pub(crate) struct Notify<'a> {
    pub(crate) wakes: &'a [Wake],
}

impl Call for Notify<'_> {
    type Reply = ();

    const SQL: &'static str = "SELECT pg_catalog.pg_notify(w.channel, w.attempt::text) \
         FROM unnest($1::text[], $2::uuid[]) AS w(channel, attempt)";

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        let channels: Vec<_> = self.wakes.iter().map(|wake| &*wake.channel).collect();
        let attempts = self.wakes.iter().map(|wake| uuid(wake.attempt.as_u128()));
        query.bind(channels).bind(attempts.collect::<Vec<_>>())
    }

    fn read(_rows: &[PgRow]) -> Answered<()> {
        Ok(())
    }
}

/// The channel on which a store object is told.
pub(crate) struct Channel {
    pub(crate) instance: Uuid,
}

impl Call for Channel {
    type Reply = String;

    const SQL: &'static str = "SELECT 'dlock_' || left(md5($1::uuid::text), 16) AS channel";
    const WRITES: bool = false;

    fn bind<'q>(&'q self, query: Query<'q>, _lock_ms: i32) -> Query<'q> {
        query.bind(self.instance)
    }

    fn read(rows: &[PgRow]) -> Answered<String> {
        column(only(rows)?, "channel")
    }
}
