//! Fencing of what is kept in Postgres: the highest token stands in a table beside the data, and each
//! transaction that writes them compares.
//!
//! [`admit`] does that over sqlx, in the transaction of the caller; [`ADMIT`] is the statement for
//! every other client. Both need the table that [`CREATE`] makes. The lock itself may be in this
//! database, in another one, or in etcd.
//!
//! A table of one's own needs none of it where each row has a column for the token. The write itself
//! compares, and no row means that the token is stale:
//!
//! ```sql
//! UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//! ```
//!
//! With `<` in the place of `<=`, a holder could write once only. A comparison that is a statement of
//! its own, before the write, does not protect: between the two, another one may write.
//!
//! # Examples
//!
//! ```no_run
//! use lock_fence::{FencingToken, postgres};
//! use sqlx::{Connection, PgConnection};
//!
//! # async fn migrate(
//! #     connection: &mut PgConnection,
//! #     token: FencingToken,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let mut transaction = connection.begin().await?;
//! postgres::admit(&mut transaction, "schema", token).await?; // stale: rolled back
//! sqlx::query("ALTER TABLE account ADD COLUMN limit_cents bigint")
//!     .execute(&mut *transaction)
//!     .await?;
//! transaction.commit().await?;
//! # Ok(())
//! # }
//! ```

use lock_spi::FencingToken;
use sqlx::PgConnection;

use crate::Stale;

/// Makes the table of the tokens, in a schema of its own, unless it is there. It is for whoever may
/// change the database; who writes needs `USAGE` of the schema, and `SELECT`, `INSERT` and `UPDATE`
/// of the table.
pub const CREATE: &str = "\
CREATE SCHEMA IF NOT EXISTS lock_fence;
CREATE TABLE IF NOT EXISTS lock_fence.marks (
    resource text COLLATE \"C\" PRIMARY KEY,
    token bigint NOT NULL CHECK (token > 0)
);
COMMENT ON TABLE lock_fence.marks IS
    'The highest fencing token seen for each resource. A row that is lost lets stale writers in.';
";

/// Admits the token `$2` to the resource `$1`: one row, or none if it is stale; then roll back. To be
/// run in the transaction that writes, before the writes. Until the transaction ends, nobody else is
/// admitted to the resource.
///
/// Where transactions are repeatable reads or stricter, one that waited for another to end fails with
/// `40001` instead, as all others do there.
pub const ADMIT: &str = "\
INSERT INTO lock_fence.marks AS mark (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token
RETURNING token
";

const HIGHEST: &str = "SELECT token FROM lock_fence.marks WHERE resource = $1";

/// Fails, which is what it is for: the transaction can then only be rolled back.
const FAIL: &str = "DO $$ BEGIN RAISE EXCEPTION 'stale fencing token'; END $$";

/// The token was not admitted, and nothing of the transaction will be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The token is older than one that the resource has seen. Trying again with it is of no use.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The database did not answer, or refused: without the table that [`CREATE`] makes, or the right
    /// to write to it; or as any statement may be refused, of which the transaction can be tried
    /// again.
    #[error("the fencing token cannot be compared")]
    Database(#[from] sqlx::Error),
}

/// Admits a token to a resource, in the caller's transaction, if it is at least as high as every one
/// that was admitted before; compares and remembers in one statement.
///
/// To be called before the writes. Should another transaction have the resource, it is waited for.
/// Until the caller's own ends, nobody else is admitted.
///
/// # Errors
///
/// [`AdmitError::Stale`] when a higher token was admitted before. The transaction then has failed: it
/// can only be rolled back, to a savepoint at least, and a `COMMIT` does the same.
/// [`AdmitError::Database`] when the database did not answer or refused.
///
/// # Cancel safety
///
/// Dropped before it is done, it may have admitted the token, in a transaction that is the caller's
/// to roll back.
pub async fn admit(
    connection: &mut PgConnection,
    resource: &str,
    token: FencingToken,
) -> Result<(), AdmitError> {
    let admitted = sqlx::query(ADMIT)
        .bind(resource)
        .bind(token.as_i64())
        .fetch_optional(&mut *connection)
        .await?;
    if admitted.is_some() {
        return Ok(());
    }
    let highest: i64 = sqlx::query_scalar(HIGHEST)
        .bind(resource)
        .fetch_one(&mut *connection)
        .await?;
    let highest =
        FencingToken::try_from(highest).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    // A caller that overlooks the error commits nothing.
    drop(sqlx::raw_sql(FAIL).execute(connection).await);
    Err(Stale { token, highest }.into())
}
