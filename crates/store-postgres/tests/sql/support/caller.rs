//! A connection that calls the functions of the schema.

use std::collections::BTreeMap;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Uuid;
use sqlx::{AssertSqlSafe, Decode, Postgres, Row, Type};

use super::server::run;

/// The namespace of all tests.
pub(crate) const NAMESPACE: &str = "tests";
/// How long a call waits for a row unless told otherwise.
const LOCK_MS: i32 = 5_000;
/// So often somebody is looked for who should come to wait: twenty seconds.
const LOOKS: u32 = 4_000;

/// The store object that opens sessions, unless a test brings another.
pub(crate) const INSTANCE: Uuid = Uuid::from_u128(0x1000);

/// An attempt, or another id.
pub(crate) const fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// The place in the arrays of a call, from 0, that a row is about.
fn place(row: &PgRow) -> usize {
    let from_one: i32 = row.get("n");
    usize::try_from(from_one).unwrap() - 1
}

/// A connection, and what it calls.
#[derive(Debug)]
pub(crate) struct Caller {
    connection: PgConnection,
    pid: i32,
    /// Handed to the calls that take one.
    pub(crate) lock_ms: i32,
}

/// What became of an insert.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Insert {
    pub(crate) outcome: String,
    pub(crate) token: Option<i64>,
    pub(crate) remaining_ms: Option<i64>,
    pub(crate) lifted: Option<bool>,
    pub(crate) place: Option<i64>,
    pub(crate) ahead: Option<i32>,
    pub(crate) holder: Option<i64>,
    pub(crate) wake_channel: Option<String>,
    pub(crate) wake_attempt: Option<Uuid>,
}

/// One row of the answer to a keeping alive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Kept {
    pub(crate) kind: String,
    pub(crate) key: Option<String>,
    pub(crate) remaining_ms: Option<i64>,
    pub(crate) revoked_by: Option<String>,
    pub(crate) revoked_reason: Option<String>,
}

/// Whom to wake, if anybody.
pub(crate) type Wake = Option<Uuid>;

/// What became of a revoke.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Revoked {
    pub(crate) revoked: bool,
    pub(crate) previous_token: Option<i64>,
    pub(crate) previous_owner: Option<String>,
    pub(crate) floor: Option<i64>,
    pub(crate) lifted: Option<bool>,
    pub(crate) wake: Wake,
}

impl Caller {
    pub(super) async fn new(connection: PgConnection) -> Self {
        let mut caller = Self {
            connection,
            pid: 0,
            lock_ms: LOCK_MS,
        };
        caller.pid = caller.value("SELECT pg_backend_pid()").await;
        caller
    }

    /// Runs statements, each by itself.
    pub(crate) async fn run(&mut self, sql: &str) {
        self.try_run(sql).await.unwrap();
    }

    /// The same, for what may be refused.
    pub(crate) async fn try_run(&mut self, sql: &str) -> sqlx::Result<()> {
        run(&mut self.connection, sql.to_owned()).await
    }

    /// The one value of a query.
    pub(crate) async fn value<T>(&mut self, sql: &str) -> T
    where
        T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
    {
        let row = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&mut self.connection)
            .await;
        row.unwrap().get(0)
    }

    /// The first column of all rows, which is text.
    pub(crate) async fn lines(&mut self, sql: &str) -> Vec<String> {
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_all(&mut self.connection)
            .await;
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// Returns once somebody waits for a lock: the caller whose id this is.
    pub(crate) async fn until_waits(&mut self, pid: i32) {
        let look = format!(
            "SELECT wait_event_type IS NOT DISTINCT FROM 'Lock', pg_sleep(0.005)
               FROM pg_stat_activity WHERE pid = {pid}"
        );
        for _ in 0..LOOKS {
            if self.value(&look).await {
                return;
            }
        }
        panic!("nobody waits");
    }

    /// The id of its process at the server.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Opens a session of a day: its outcome.
    pub(crate) async fn open(&mut self, session: i64) -> String {
        self.open_for(session, 86_400_000).await.0
    }

    /// Opens a session of so many milliseconds: the outcome, and what is left.
    pub(crate) async fn open_for(&mut self, session: i64, ttl_ms: i64) -> (String, Option<i64>) {
        self.open_of(session, INSTANCE, ttl_ms).await.unwrap()
    }

    /// Opens a session of this store object.
    pub(crate) async fn open_of(
        &mut self,
        session: i64,
        instance: Uuid,
        ttl_ms: i64,
    ) -> sqlx::Result<(String, Option<i64>)> {
        let row = sqlx::query("SELECT * FROM dlock.open_session_1($1, $2, $3, 'owner', $4, $5)")
            .bind(NAMESPACE)
            .bind(session)
            .bind(instance)
            .bind(ttl_ms)
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await?;
        Ok((row.get("outcome"), row.get("remaining_ms")))
    }

    /// Keeps a session alive: no row, and it is gone.
    pub(crate) async fn keep_alive(&mut self, session: i64, grants: &[(&str, i64)]) -> Vec<Kept> {
        let keys: Vec<&str> = grants.iter().map(|(key, _)| *key).collect();
        let tokens: Vec<i64> = grants.iter().map(|(_, token)| *token).collect();
        let rows = sqlx::query("SELECT * FROM dlock.keep_alive_1($1, $2, $3, $4, $5)")
            .bind(NAMESPACE)
            .bind(session)
            .bind(keys)
            .bind(tokens)
            .bind(self.lock_ms)
            .fetch_all(&mut self.connection)
            .await
            .unwrap();
        let kept = |row: &PgRow| Kept {
            kind: row.get("kind"),
            key: row.get("lock_key"),
            remaining_ms: row.get("remaining_ms"),
            revoked_by: row.get("revoked_by"),
            revoked_reason: row.get("revoked_reason"),
        };
        rows.iter().map(kept).collect()
    }

    /// Closes a session: whom to wake.
    pub(crate) async fn close(&mut self, session: i64) -> Vec<Uuid> {
        let rows = sqlx::query("SELECT * FROM dlock.close_session_1($1, $2, $3)")
            .bind(NAMESPACE)
            .bind(session)
            .bind(self.lock_ms)
            .fetch_all(&mut self.connection)
            .await
            .unwrap();
        rows.iter().map(|row| row.get("wake_attempt")).collect()
    }

    /// Tries to take a lock, without a place.
    pub(crate) async fn insert(&mut self, key: &str, session: i64, attempt: u128) -> Insert {
        self.try_insert(key, session, attempt, false).await.unwrap()
    }

    /// Tries to take a lock, or a place.
    pub(crate) async fn enqueue(&mut self, key: &str, session: i64, attempt: u128) -> Insert {
        self.try_insert(key, session, attempt, true).await.unwrap()
    }

    /// Tries to take a lock.
    pub(crate) async fn try_insert(
        &mut self,
        key: &str,
        session: i64,
        attempt: u128,
        queue: bool,
    ) -> sqlx::Result<Insert> {
        let sql = "SELECT * FROM dlock.try_insert_1($1, $2, $3, $4, $5, $6, $7)";
        let row = sqlx::query(sql)
            .bind(NAMESPACE)
            .bind(key)
            .bind(session)
            .bind(id(attempt))
            .bind(b"payload".as_slice())
            .bind(queue)
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await?;
        Ok(Insert {
            outcome: row.get("outcome"),
            token: row.get("token"),
            remaining_ms: row.get("remaining_ms"),
            lifted: row.get("lifted"),
            place: row.get("place"),
            ahead: row.get("ahead"),
            holder: row.get("h_token"),
            wake_channel: row.get("wake_channel"),
            wake_attempt: row.get("wake_attempt"),
        })
    }

    /// Tries to take several locks at once: the tokens of those that were granted, by the place of
    /// the key, and whether any was lifted.
    pub(crate) async fn insert_many(
        &mut self,
        wishes: &[(&str, i64, u128)],
    ) -> sqlx::Result<(BTreeMap<usize, i64>, bool)> {
        let keys: Vec<_> = wishes.iter().map(|(key, _, _)| *key).collect();
        let sessions: Vec<_> = wishes.iter().map(|(_, session, _)| *session).collect();
        let attempts: Vec<_> = wishes.iter().map(|(_, _, attempt)| id(*attempt)).collect();
        let rows = sqlx::query("SELECT * FROM dlock.try_insert_many_1($1, $2, $3, $4, $5, $6)")
            .bind(NAMESPACE)
            .bind(&keys)
            .bind(sessions)
            .bind(attempts)
            .bind(vec![b"payload".as_slice(); keys.len()])
            .bind(self.lock_ms)
            .fetch_all(&mut self.connection)
            .await?;
        let granted = rows.iter().map(|row| (place(row), row.get("token")));
        let lifted = rows.iter().any(|row| row.get("lifted"));
        Ok((granted.collect(), lifted))
    }

    /// Releases several grants at once: what became of those that were not left alone, by the place
    /// of the key.
    pub(crate) async fn release_many(
        &mut self,
        grants: &[(&str, i64)],
        settled: bool,
    ) -> sqlx::Result<BTreeMap<usize, bool>> {
        let keys: Vec<_> = grants.iter().map(|(key, _)| *key).collect();
        let tokens: Vec<_> = grants.iter().map(|(_, token)| *token).collect();
        let rows = sqlx::query("SELECT * FROM dlock.release_many_1($1, $2, $3, $4, $5)")
            .bind(NAMESPACE)
            .bind(&keys)
            .bind(tokens)
            .bind(vec![settled; keys.len()])
            .bind(self.lock_ms)
            .fetch_all(&mut self.connection)
            .await?;
        let ended = rows.iter().map(|row| (place(row), row.get("released")));
        Ok(ended.collect())
    }

    /// Takes a lock that is free: its token.
    pub(crate) async fn take(&mut self, key: &str, session: i64, attempt: u128) -> i64 {
        let insert = self.insert(key, session, attempt).await;
        assert_eq!(insert.outcome, "granted", "{insert:?}");
        insert.token.unwrap()
    }

    /// Extends a grant: what is left.
    pub(crate) async fn extend(&mut self, key: &str, token: i64) -> Option<i64> {
        let row = sqlx::query("SELECT * FROM dlock.extend_1($1, $2, $3, $4)")
            .bind(NAMESPACE)
            .bind(key)
            .bind(token)
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await;
        row.unwrap().get("remaining_ms")
    }

    /// Releases a grant of which nothing is on its way: whether it ended it, and whom to wake.
    pub(crate) async fn release(&mut self, key: &str, token: i64) -> (bool, Wake) {
        self.release_settled(key, token, true).await
    }

    /// Releases a grant.
    pub(crate) async fn release_settled(
        &mut self,
        key: &str,
        token: i64,
        settled: bool,
    ) -> (bool, Wake) {
        let row = sqlx::query("SELECT * FROM dlock.release_1($1, $2, $3, $4, $5)")
            .bind(NAMESPACE)
            .bind(key)
            .bind(token)
            .bind(settled)
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await
            .unwrap();
        (row.get("released"), row.get("wake_attempt"))
    }

    /// Gives an attempt up: whom to wake.
    pub(crate) async fn abandon(&mut self, key: &str, session: i64, attempt: u128) -> Wake {
        let row = sqlx::query("SELECT * FROM dlock.abandon_1($1, $2, $3, $4, $5)")
            .bind(NAMESPACE)
            .bind(key)
            .bind(session)
            .bind(id(attempt))
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await;
        row.unwrap().get("wake_attempt")
    }

    /// Revokes the grant with this token, or whoever holds the key.
    pub(crate) async fn revoke(&mut self, key: &str, target: Option<i64>, wish: u128) -> Revoked {
        let sql = "SELECT * FROM dlock.revoke_1($1, $2, $3, $4, 'operator', 'reason', $5)";
        let row = sqlx::query(sql)
            .bind(NAMESPACE)
            .bind(key)
            .bind(target)
            .bind(id(wish))
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await
            .unwrap();
        Revoked {
            revoked: row.get("revoked"),
            previous_token: row.get("previous_token"),
            previous_owner: row.get("previous_owner"),
            floor: row.get("new_token_floor"),
            lifted: row.get("lifted"),
            wake: row.get("wake_attempt"),
        }
    }

    /// The token of the grant that stands.
    pub(crate) async fn read(&mut self, key: &str) -> Option<i64> {
        let row = sqlx::query("SELECT * FROM dlock.read_1($1, $2)")
            .bind(NAMESPACE)
            .bind(key)
            .fetch_one(&mut self.connection)
            .await;
        row.unwrap().get("token")
    }

    /// Clears what is dead: how much, and where to go on.
    pub(crate) async fn reap(&mut self, limit: i32, after: Option<&str>) -> (i32, Option<String>) {
        let row = sqlx::query("SELECT * FROM dlock.reap_1($1, $2, $3, $4)")
            .bind(NAMESPACE)
            .bind(limit)
            .bind(after)
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await
            .unwrap();
        (row.get("cleared"), row.get("next_key"))
    }

    /// Recovers the namespace: the term, and how long it is closed.
    pub(crate) async fn recover(
        &mut self,
        wish: u128,
        above: Option<i64>,
        hold_off_ms: i64,
    ) -> sqlx::Result<(i64, i64)> {
        let row = sqlx::query("SELECT * FROM dlock.recover_1($1, $2, $3, $4, $5)")
            .bind(NAMESPACE)
            .bind(id(wish))
            .bind(above)
            .bind(hold_off_ms)
            .bind(self.lock_ms)
            .fetch_one(&mut self.connection)
            .await?;
        Ok((row.get("term"), row.get("closed_ms")))
    }

    /// What a new connection is told: the problem, and the warning.
    pub(crate) async fn attach(&mut self) -> (Option<String>, Option<String>) {
        let row = sqlx::query("SELECT * FROM dlock.attach_1()")
            .fetch_one(&mut self.connection)
            .await
            .unwrap();
        (row.get("problem"), row.get("warning"))
    }
}

/// The code of the server's refusal.
pub(crate) fn code<T: std::fmt::Debug>(result: sqlx::Result<T>) -> String {
    match result {
        Err(sqlx::Error::Database(error)) => error.code().unwrap_or_default().into_owned(),
        other => panic!("not refused: {other:?}"),
    }
}
