//! One statement, and its answer.

use lock_spi::Instant;
use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};

pub(crate) type Query<'q> = sqlx::query::Query<'q, Postgres, PgArguments>;

/// One call of a function of the schema, as one statement in autocommit.
pub(crate) trait Call: Send + Sync {
    type Reply: Send;

    const SQL: &'static str;

    /// Whether it can leave anything changed.
    const WRITES: bool = true;

    /// Whether a second copy has the answer that the first one had.
    const REPEATABLE: bool = true;

    /// Whether it goes before the others where connections are scarce, as what keeps a lock does.
    const URGENT: bool = false;

    /// Adds the arguments, in order. `lock_ms` is how long it may wait for a row.
    fn bind<'q>(&'q self, query: Query<'q>, lock_ms: i32) -> Query<'q>;

    fn read(rows: &[PgRow]) -> Result<Self::Reply, sqlx::Error>;
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Answer<R> {
    pub(crate) reply: R,
    /// When the copy that was answered was sent.
    pub(crate) sent: Instant,
    /// An earlier copy was not answered, and may arrive yet.
    pub(crate) copy_lost: bool,
}

pub(super) async fn run<C: Call>(
    connection: &mut PgConnection,
    call: &C,
    lock_ms: i32,
) -> Result<C::Reply, sqlx::Error> {
    let query = call.bind(sqlx::query(C::SQL), lock_ms);
    let rows = query.fetch_all(connection).await?;
    C::read(&rows)
}
