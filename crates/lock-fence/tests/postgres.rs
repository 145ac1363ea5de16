//! What is kept in a real Postgres refuses stale tokens, in the transaction that writes.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::sync::LazyLock;

use lock_fence::FencingToken;
use lock_fence::postgres::{ADMIT, AdmitError, CREATE, admit};
use sqlx::{Connection, PgConnection};
use test_servers::Postgres;

const TABLE: &str =
    "CREATE TABLE account (id text PRIMARY KEY, balance int, fence bigint NOT NULL)";
const ROW: &str = "INSERT INTO account VALUES ('a', 0, 0)";
/// The write of one's own table, as the documentation shows it.
const FENCED: &str = "UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2";
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock'";

fn token(value: u64) -> FencingToken {
    FencingToken::new(value).unwrap()
}

/// The database of one test, on a server that all of them share.
struct Scene {
    server: &'static Postgres,
    database: &'static str,
}

impl Scene {
    async fn connect(&self) -> PgConnection {
        let url = self.server.url(self.database);
        PgConnection::connect(&url).await.unwrap()
    }

    /// Waits until a session waits for another one.
    async fn somebody_waits(&self) {
        let mut observer = self.connect().await;
        for _ in 0..10_000 {
            let waiting: i64 = sqlx::query_scalar(WAITING)
                .fetch_one(&mut observer)
                .await
                .unwrap();
            if waiting > 0 {
                return;
            }
        }
        panic!("nobody waits");
    }

    fn balance(&self) -> String {
        let balance = "SELECT balance FROM account";
        self.server.psql(self.database, balance).unwrap()
    }
}

/// `database` is the test's own.
fn run(database: &'static str, test: impl AsyncFnOnce(Scene)) {
    // It ends with the process.
    static SERVER: LazyLock<Postgres> = LazyLock::new(|| Postgres::start().unwrap());
    let server = &*SERVER;
    server.create_database(database).unwrap();
    for sql in [CREATE, CREATE, TABLE, ROW] {
        server.psql(database, sql).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test(Scene { server, database }));
}

async fn set_balance(connection: &mut PgConnection, balance: i32) {
    let update = "UPDATE account SET balance = $1";
    let update = sqlx::query(update).bind(balance);
    update.execute(connection).await.unwrap();
}

#[track_caller]
fn assert_stale(refused: Result<(), AdmitError>, highest: u64) {
    let Err(AdmitError::Stale(stale)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(stale.highest, token(highest));
}

/// B151: a resource refuses an old token after a new one, and admits an equal one; backends P45.
#[test]
fn an_old_token_is_refused_and_the_same_one_admitted_again() {
    run("again", async |scene| {
        let mut connection = scene.connect().await;
        for admitted in [5, 5, 7] {
            admit(&mut connection, "a", token(admitted)).await.unwrap();
        }
        assert_stale(admit(&mut connection, "a", token(6)).await, 7);
        admit(&mut connection, "a", token(7)).await.unwrap();
    });
}

/// B151: a new resource admits the first token, whatever it is.
#[test]
fn a_new_resource_admits_any_first_token() {
    run("first", async |scene| {
        let mut connection = scene.connect().await;
        let firsts = [("a", 1), ("A", 9), ("", FencingToken::MAX.as_u64())];
        for (resource, first) in firsts {
            admit(&mut connection, resource, token(first))
                .await
                .unwrap();
        }
        assert_stale(admit(&mut connection, "A", token(8)).await, 9);
    });
}

/// Backends P45: a stale token that waited behind a newer one hits no row.
#[test]
fn a_stale_token_that_waited_behind_a_newer_one_is_refused_and_rolled_back() {
    run("stale", async |scene| {
        let (mut newer, mut stale) = (scene.connect().await, scene.connect().await);
        admit(&mut newer, "a", token(1)).await.unwrap();

        let mut ahead = newer.begin().await.unwrap();
        admit(&mut ahead, "a", token(10)).await.unwrap();
        set_balance(&mut ahead, 10).await;
        let behind = async {
            let mut behind = stale.begin().await.unwrap();
            let refused = admit(&mut behind, "a", token(9)).await;
            drop(behind); // as `?` does
            refused
        };
        let ahead = async {
            scene.somebody_waits().await;
            ahead.commit().await.unwrap();
        };
        let (refused, ()) = tokio::join!(behind, ahead);
        assert_stale(refused, 10);
        set_balance(&mut stale, 11).await;
        assert_eq!(scene.balance(), "11", "the connection is of use");
    });
}

#[test]
fn a_newer_token_waits_for_the_transaction_of_an_older_one_and_is_admitted() {
    run("newer", async |scene| {
        let (mut older, mut newer) = (scene.connect().await, scene.connect().await);
        let mut ahead = older.begin().await.unwrap();
        admit(&mut ahead, "a", token(9)).await.unwrap();
        set_balance(&mut ahead, 9).await;
        let behind = async {
            admit(&mut newer, "a", token(10)).await.unwrap();
            set_balance(&mut newer, 10).await;
        };
        let ahead = async {
            scene.somebody_waits().await;
            ahead.commit().await.unwrap();
        };
        tokio::join!(behind, ahead);
        assert_eq!(scene.balance(), "10");
    });
}

#[test]
fn a_caller_that_overlooks_the_error_commits_nothing() {
    run("overlooked", async |scene| {
        let mut connection = scene.connect().await;
        admit(&mut connection, "a", token(10)).await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        set_balance(&mut transaction, 9).await;
        assert_stale(admit(&mut transaction, "a", token(9)).await, 10);
        transaction.commit().await.unwrap();
        assert_eq!(scene.balance(), "0");
    });
}

#[test]
fn a_token_of_a_transaction_that_is_rolled_back_was_never_admitted() {
    run("rolled_back", async |scene| {
        let mut connection = scene.connect().await;
        let mut transaction = connection.begin().await.unwrap();
        admit(&mut transaction, "a", token(10)).await.unwrap();
        transaction.rollback().await.unwrap();
        admit(&mut connection, "a", token(9)).await.unwrap();
    });
}

/// Under a stricter isolation, the one that waited fails whatever its token is.
#[test]
fn a_repeatable_read_that_waited_is_told_to_begin_again() {
    run("repeatable", async |scene| {
        let (mut newer, mut stale) = (scene.connect().await, scene.connect().await);
        admit(&mut newer, "a", token(1)).await.unwrap();
        let mut ahead = newer.begin().await.unwrap();
        admit(&mut ahead, "a", token(10)).await.unwrap();
        let behind = async {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
            let mut behind = stale.begin_with(begin).await.unwrap();
            admit(&mut behind, "a", token(9)).await.unwrap_err()
        };
        let ahead = async {
            scene.somebody_waits().await;
            ahead.commit().await.unwrap();
        };
        let (error, ()) = tokio::join!(behind, ahead);
        let AdmitError::Database(sqlx::Error::Database(error)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.code().unwrap(), "40001");
    });
}

#[test]
fn without_the_table_nobody_is_admitted() {
    run("no_table", async |scene| {
        let mut connection = scene.connect().await;
        let drop = "DROP SCHEMA lock_fence CASCADE";
        sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
        let error = admit(&mut connection, "a", token(1)).await.unwrap_err();
        let AdmitError::Database(error) = error else {
            panic!("{error:?}");
        };
        assert!(error.to_string().contains("lock_fence.marks"), "{error}");
    });
}

/// The rights that the documentation names are enough.
#[test]
fn a_role_of_few_rights_is_admitted_and_cannot_forget() {
    run("few_rights", async |scene| {
        let mut connection = scene.connect().await;
        let role = "CREATE ROLE writer;
                    GRANT USAGE ON SCHEMA lock_fence TO writer;
                    GRANT SELECT, INSERT, UPDATE ON lock_fence.marks TO writer;
                    SET ROLE writer";
        sqlx::raw_sql(role).execute(&mut connection).await.unwrap();
        admit(&mut connection, "a", token(10)).await.unwrap();
        assert_stale(admit(&mut connection, "a", token(9)).await, 10);
        let forget = sqlx::query("DELETE FROM lock_fence.marks");
        assert!(forget.execute(&mut connection).await.is_err());
    });
}

/// The text serves any client, here one that is no Rust.
#[test]
fn the_statement_serves_other_clients() {
    run("other_clients", async |scene| {
        let rows = |value: u64| {
            let arguments = format!("EXECUTE admit ('a', {value})");
            let sql = format!("PREPARE admit (text, bigint) AS {ADMIT}; {arguments}");
            scene.server.psql(scene.database, &sql).unwrap()
        };
        assert_eq!(
            (rows(10), rows(10), rows(9)),
            ("10".into(), "10".into(), String::new())
        );
    });
}

/// Backends P45: in a table of one's own the write compares, also after it has waited.
#[test]
fn a_write_that_compares_hits_no_row_after_a_newer_one() {
    run("own_table", async |scene| {
        let (mut newer, mut stale) = (scene.connect().await, scene.connect().await);
        let mut ahead = newer.begin().await.unwrap();
        assert_eq!(fenced(&mut ahead, 10).await, 1);
        assert_eq!(
            fenced(&mut ahead, 10).await,
            1,
            "the same token writes again"
        );
        let ahead = async {
            scene.somebody_waits().await;
            ahead.commit().await.unwrap();
        };
        let (written, ()) = tokio::join!(fenced(&mut stale, 9), ahead);
        assert_eq!(written, 0);
        assert_eq!(scene.balance(), "10");
    });
}

/// Writes the token as the balance, and answers with how many rows it hit.
async fn fenced(connection: &mut PgConnection, value: u64) -> u64 {
    let balance = i32::try_from(value).unwrap();
    let fenced = sqlx::query(FENCED)
        .bind(balance)
        .bind(token(value).as_i64())
        .bind("a");
    fenced.execute(connection).await.unwrap().rows_affected()
}
