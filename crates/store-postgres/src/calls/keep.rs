use std::time::Duration;

use lock_spi::{Gone, GoneReason, GrantRef, Namespace, Owner, Reason, SessionId};
use sqlx::postgres::PgRow;

use super::row::{Answered, column, key, milliseconds, nonsense, required, token, unexpected};
use crate::client::{Call, Query};

pub(crate) struct Keep<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) session: SessionId,
    pub(crate) grants: &'a [GrantRef],
}

/// A session that was renewed.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) remaining: Duration,
    pub(crate) gone: Vec<Gone>,
    /// Their rows were busy; they stand for so long.
    pub(crate) late: Vec<(GrantRef, Duration)>,
}

impl Call for Keep<'_> {
    /// `None`: the session is gone.
    type Reply = Option<Kept>;

    const SQL: &'static str = "SELECT * FROM dlock.keep_alive_1($1, $2, $3, $4, $5)";
    const URGENT: bool = true;

    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q> {
        let keys: Vec<_> = self.grants.iter().map(|grant| grant.key.as_str()).collect();
        let tokens: Vec<_> = self
            .grants
            .iter()
            .map(|grant| grant.token.as_i64())
            .collect();
        query
            .bind(self.namespace.as_str())
            .bind(self.session.as_i64())
            .bind(keys)
            .bind(tokens)
            .bind(lock_ms)
    }

    fn read(rows: &[PgRow]) -> Answered<Option<Kept>> {
        if rows.is_empty() {
            return Ok(None);
        }
        let mut kept = Kept::default();
        let mut told = false;
        for row in rows {
            match column(row, "kind")? {
                "session" => {
                    kept.remaining = required(milliseconds(row, "remaining_ms")?, "remaining")?;
                    told = true;
                }
                "late" => {
                    let left = required(milliseconds(row, "remaining_ms")?, "remaining")?;
                    kept.late.push((grant(row)?, left));
                }
                "gone" => {
                    let GrantRef { key, token } = grant(row)?;
                    let why = why(row)?;
                    kept.gone.push(Gone { key, token, why });
                }
                other => return Err(unexpected(format!("a row of kind {other:?}"))),
            }
        }
        match told {
            true => Ok(Some(kept)),
            false => Err(unexpected("grants without their session")),
        }
    }
}

fn grant(row: &PgRow) -> Answered<GrantRef> {
    Ok(GrantRef {
        key: key(row, "lock_key")?,
        token: required(token(row, "token")?, "token")?,
    })
}

fn why(row: &PgRow) -> Answered<GoneReason> {
    let by: Option<&str> = column(row, "revoked_by")?;
    let reason: Option<&str> = column(row, "revoked_reason")?;
    Ok(match by {
        None => GoneReason::Ended,
        Some(by) => GoneReason::Revoked {
            by: Owner::new(by).map_err(nonsense)?,
            reason: Reason::new(reason.unwrap_or_default()).map_err(nonsense)?,
        },
    })
}
