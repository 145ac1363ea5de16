//! Columns as what they mean.

use std::time::Duration;

use lock_spi::{AttemptId, FencingToken, Holder, Invalid, LockKey, Owner, Payload, SessionId};
use sqlx::postgres::{PgRow, Postgres};
use sqlx::types::Uuid;
use sqlx::{Decode, Row, Type};

pub(crate) type Answered<T> = Result<T, sqlx::Error>;

/// Whom to tell that it is its turn to look.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Wake {
    pub(crate) channel: String,
    pub(crate) attempt: AttemptId,
}

/// A value that the schema would never have stored.
pub(super) fn nonsense(invalid: Invalid) -> sqlx::Error {
    sqlx::Error::Decode(invalid.into())
}

pub(super) fn unexpected(what: impl Into<String>) -> sqlx::Error {
    sqlx::Error::Decode(what.into().into())
}

/// The place in the arrays of a call for many, from 0, that a row is about.
pub(super) fn place(row: &PgRow) -> Answered<usize> {
    let place: i32 = column(row, "n")?;
    let from_zero = usize::try_from(place).ok().and_then(|n| n.checked_sub(1));
    from_zero.ok_or_else(|| unexpected(format!("an answer for place {place}")))
}

/// The one row of a function that answers with one.
pub(super) fn only(rows: &[PgRow]) -> Answered<&PgRow> {
    match rows {
        [row] => Ok(row),
        _ => Err(unexpected(format!("{} rows instead of one", rows.len()))),
    }
}

pub(super) fn column<'r, T>(row: &'r PgRow, name: &str) -> Answered<T>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(name)
}

pub(super) fn uuid(id: u128) -> Uuid {
    Uuid::from_u128(id)
}

pub(super) fn attempt_id(row: &PgRow, name: &str) -> Answered<Option<AttemptId>> {
    let id: Option<Uuid> = column(row, name)?;
    Ok(id.map(|id| AttemptId::from_u128(id.as_u128())))
}

pub(super) fn token(row: &PgRow, name: &str) -> Answered<Option<FencingToken>> {
    let value: Option<i64> = column(row, name)?;
    value
        .map(FencingToken::try_from)
        .transpose()
        .map_err(nonsense)
}

pub(super) fn session_id(row: &PgRow, name: &str) -> Answered<Option<SessionId>> {
    let value: Option<i64> = column(row, name)?;
    value.map(SessionId::new).transpose().map_err(nonsense)
}

pub(super) fn key(row: &PgRow, name: &str) -> Answered<LockKey> {
    let text: &str = column(row, name)?;
    LockKey::new(text).map_err(nonsense)
}

pub(super) fn owner(row: &PgRow, name: &str) -> Answered<Option<Owner>> {
    let text: Option<&str> = column(row, name)?;
    text.map(Owner::new).transpose().map_err(nonsense)
}

/// What is below zero is over.
pub(super) fn milliseconds(row: &PgRow, name: &str) -> Answered<Option<Duration>> {
    let value: Option<i64> = column(row, name)?;
    let positive = |value| Duration::from_millis(u64::try_from(value).unwrap_or(0));
    Ok(value.map(positive))
}

pub(super) fn required<T>(value: Option<T>, name: &'static str) -> Answered<T> {
    value.ok_or_else(|| unexpected(format!("no {name}")))
}

pub(super) fn count(row: &PgRow, name: &str) -> Answered<Option<u32>> {
    let value: Option<i32> = column(row, name)?;
    Ok(value.map(|value| u32::try_from(value).unwrap_or(0)))
}

pub(super) fn wake(row: &PgRow) -> Answered<Option<Wake>> {
    let channel: Option<String> = column(row, "wake_channel")?;
    let attempt = attempt_id(row, "wake_attempt")?;
    Ok(channel
        .zip(attempt)
        .map(|(channel, attempt)| Wake { channel, attempt }))
}

/// The names of the columns that tell of a holder.
pub(super) struct HolderColumns {
    pub(super) token: &'static str,
    pub(super) session: &'static str,
    pub(super) owner: &'static str,
    pub(super) payload: &'static str,
    pub(super) granted_at: &'static str,
    pub(super) remaining: &'static str,
}

impl HolderColumns {
    /// In a row that is about the lock itself.
    pub(super) const PLAIN: Self = Self {
        token: "token",
        session: "session",
        owner: "owner",
        payload: "payload",
        granted_at: "granted_at_ms",
        remaining: "remaining_ms",
    };

    pub(super) fn read(&self, row: &PgRow) -> Answered<Option<Holder>> {
        let Some(token) = token(row, self.token)? else {
            return Ok(None);
        };
        let payload: Option<Vec<u8>> = column(row, self.payload)?;
        Ok(Some(Holder {
            token,
            owner: required(owner(row, self.owner)?, "owner")?,
            session: required(session_id(row, self.session)?, "session")?,
            payload: Payload::new(payload.unwrap_or_default()).map_err(nonsense)?,
            granted_at: required(milliseconds(row, self.granted_at)?, "time of the grant")?,
            remaining: milliseconds(row, self.remaining)?,
        }))
    }
}
