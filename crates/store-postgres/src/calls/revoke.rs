use lock_spi::{LockOutcome, Namespace, RevokeRequest, RevokeTarget};
use sqlx::postgres::PgRow;

use super::row::{Answered, Wake, column, only, owner, token, uuid, wake};
use crate::client::{Call, Query};

pub(crate) struct Revoke<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) request: &'a RevokeRequest,
}

#[derive(Debug)]
pub(crate) struct Revoked {
    pub(crate) outcome: LockOutcome,
    /// The counter had gone back and was overruled.
    pub(crate) lifted: bool,
    pub(crate) wake: Option<Wake>,
}

impl Call for Revoke<'_> {
    type Reply = Revoked;

    const SQL: &'static str = "SELECT * FROM dlock.revoke_1($1, $2, $3, $4, $5, $6, $7)";

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        let RevokeRequest {
            key,
            target,
            id,
            by,
            reason,
        } = self.request;
        let target = match target {
            RevokeTarget::Grant(token) => Some(token.as_i64()),
            RevokeTarget::Whoever => None,
        };
        query
            .bind(self.namespace.as_str())
            .bind(key.as_str())
            .bind(target)
            .bind(uuid(id.as_u128()))
            .bind(by.as_str())
            .bind(reason.as_str())
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Revoked> {
        let row = only(rows)?;
        Ok(Revoked {
            outcome: outcome(row)?,
            lifted: column::<Option<bool>>(row, "lifted")?.unwrap_or(false),
            wake: wake(row)?,
        })
    }
}

/// What a revoke did, of its answer as of its record.
pub(super) fn outcome(row: &PgRow) -> Answered<LockOutcome> {
    Ok(LockOutcome {
        revoked: column(row, "revoked")?,
        previous_token: token(row, "previous_token")?,
        previous_owner: owner(row, "previous_owner")?,
        new_token_floor: token(row, "new_token_floor")?,
    })
}
