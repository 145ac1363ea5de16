use std::time::Duration;

use lock_spi::{FencingToken, Holder, InsertRequest, Namespace, Place, Queue};
use sqlx::postgres::PgRow;

use super::row::{
    Answered, HolderColumns, Wake, column, count, milliseconds, only, required, token, unexpected,
    uuid, wake,
};
use crate::client::{Call, Query};

pub(crate) struct Insert<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) request: &'a InsertRequest,
}

#[derive(Debug)]
pub(crate) struct InsertReply {
    pub(crate) inserted: Inserted,
    pub(crate) wake: Option<Wake>,
}

#[derive(Debug)]
pub(crate) enum Inserted {
    Granted {
        token: FencingToken,
        remaining: Duration,
        /// The counter had gone back and was overruled.
        lifted: bool,
    },
    Queued(Place),
    Held(Option<Holder>),
    Ended,
    SessionGone,
    /// Somebody works on the session at this very moment.
    Again,
    /// The namespace is closed for its recovery.
    Closed,
}

const HOLDER: HolderColumns = HolderColumns {
    token: "h_token",
    session: "h_session",
    owner: "h_owner",
    payload: "h_payload",
    granted_at: "h_granted_at_ms",
    remaining: "h_remaining_ms",
};

impl Call for Insert<'_> {
    type Reply = InsertReply;

    const SQL: &'static str = "SELECT * FROM dlock.try_insert_1($1, $2, $3, $4, $5, $6, $7)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        let InsertRequest {
            key,
            session,
            attempt,
            payload,
            queue,
        } = self.request;
        query
            .bind(self.namespace.as_str())
            .bind(key.as_str())
            .bind(session.as_i64())
            .bind(uuid(attempt.as_u128()))
            .bind(payload.as_bytes())
            .bind(*queue == Queue::Join)
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<InsertReply> {
        let row = only(rows)?;
        let inserted = match column(row, "outcome")? {
            "granted" => granted(row)?,
            "queued" => Inserted::Queued(place(row)?),
            "held" => Inserted::Held(HOLDER.read(row)?),
            "ended" => Inserted::Ended,
            "session_gone" => Inserted::SessionGone,
            "again" => Inserted::Again,
            "closed" => Inserted::Closed,
            other => return Err(unexpected(format!("an insert that is {other:?}"))),
        };
        let wake = wake(row)?;
        Ok(InsertReply { inserted, wake })
    }
}

pub(super) fn granted(row: &PgRow) -> Answered<Inserted> {
    Ok(Inserted::Granted {
        token: required(token(row, "token")?, "token")?,
        remaining: required(milliseconds(row, "remaining_ms")?, "remaining")?,
        lifted: column::<Option<bool>>(row, "lifted")?.unwrap_or(false),
    })
}

fn place(row: &PgRow) -> Answered<Place> {
    let position: Option<i64> = column(row, "place")?;
    Ok(Place {
        position: required(position, "place")?.unsigned_abs(),
        ahead: count(row, "ahead")?,
    })
}
