//! What a database, a role or a connection may be like.

use super::support::{Database, NAMESPACE, Verdict, cases, code, holds, id};

cases!(
    a_transaction_of_another_isolation_is_refused,
    a_role_that_defaults_to_serializable_is_refused,
    a_role_that_defaults_to_read_only_cannot_write,
    a_commit_is_flushed_whatever_the_role_has_set,
    a_stronger_commit_is_not_weakened,
    tables_of_the_same_name_elsewhere_are_not_used,
    an_operator_that_was_hijacked_decides_nothing,
    the_application_may_execute_and_nothing_else,
    nobody_may_do_anything_unless_told,
    a_nondeterministic_collation_makes_no_keys_equal,
    the_time_zone_of_a_session_changes_nothing,
);

/// F-8, P18: a REPEATABLE READ insert would walk past a waiter.
pub(crate) async fn a_transaction_of_another_isolation_is_refused(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    for isolation in ["REPEATABLE READ", "SERIALIZABLE"] {
        for call in writes() {
            caller
                .run(&format!("BEGIN ISOLATION LEVEL {isolation}"))
                .await;
            let refused = code(caller.try_run(&call).await);
            holds!(refused == "DL001", "{isolation}, {call}: {refused}");
            caller.run("ROLLBACK").await;
        }
    }
    Ok(())
}

/// F-8, B191.
pub(crate) async fn a_role_that_defaults_to_serializable_is_refused(
    database: &Database,
) -> Verdict {
    let role = application(database);
    database.psql(&format!(
        "ALTER ROLE {role} SET default_transaction_isolation = 'serializable'"
    ));
    let mut caller = database.connect_as(&role).await;
    let refused = code(caller.try_insert("key", 1, 11, false).await);
    holds!(refused == "DL001", "{refused}");
    // What the store sets when it connects.
    caller
        .run("SET default_transaction_isolation = 'read committed'")
        .await;
    caller.open(1).await;
    let insert = caller.insert("key", 1, 11).await;
    holds!(insert.outcome == "granted", "{insert:?}");
    Ok(())
}

/// P18.
pub(crate) async fn a_role_that_defaults_to_read_only_cannot_write(database: &Database) -> Verdict {
    let role = application(database);
    database.psql(&format!(
        "ALTER ROLE {role} SET default_transaction_read_only = on"
    ));
    let mut caller = database.connect_as(&role).await;
    let (problem, _) = caller.attach().await;
    holds!(problem.is_none(), "{problem:?}");
    let refused = code(caller.open_of(1, id(1), 60_000).await);
    holds!(refused == "25006", "{refused}");
    holds!(caller.read("key").await.is_none(), "a read needs no write");
    Ok(())
}

/// F-9, P7.
pub(crate) async fn a_commit_is_flushed_whatever_the_role_has_set(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    for setting in ["off", "local", "remote_write"] {
        caller
            .run(&format!("SET synchronous_commit = {setting}"))
            .await;
        for call in writes() {
            caller.run("BEGIN").await;
            caller.run(&call).await;
            let now: String = caller
                .value("SELECT current_setting('synchronous_commit')")
                .await;
            let wrote: bool = caller
                .value("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
                .await;
            let written: String = caller
                .value("SELECT pg_current_wal_insert_lsn()::text")
                .await;
            caller.run("COMMIT").await;
            holds!(now == "on", "{setting}, {call}: {now}");
            let flushed: bool = caller
                .value(&format!("SELECT pg_current_wal_flush_lsn() >= '{written}'"))
                .await;
            holds!(flushed || !wrote, "{setting}, {call}: not flushed");
        }
    }
    Ok(())
}

/// F-9: forcing `on` would lower it.
pub(crate) async fn a_stronger_commit_is_not_weakened(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.run("SET synchronous_commit = remote_apply").await;
    for call in writes() {
        caller.run("BEGIN").await;
        caller.run(&call).await;
        let now: String = caller
            .value("SELECT current_setting('synchronous_commit')")
            .await;
        caller.run("COMMIT").await;
        holds!(now == "remote_apply", "{call}: {now}");
    }
    Ok(())
}

/// Backends test 64, P13.
pub(crate) async fn tables_of_the_same_name_elsewhere_are_not_used(database: &Database) -> Verdict {
    let role = application(database);
    database.psql(&format!(
        "CREATE SCHEMA hostile AUTHORIZATION {role};
         CREATE TABLE hostile.locks (LIKE dlock.locks INCLUDING ALL);
         CREATE SEQUENCE hostile.fencing_token_seq;
         CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql
           AS 'SELECT ''epoch''::timestamptz';
         GRANT ALL ON ALL TABLES IN SCHEMA hostile TO {role}"
    ));
    let mut caller = database.connect_as(&role).await;
    caller
        .run(
            "CREATE TEMP TABLE locks (namespace text, lock_key text, held boolean);
             CREATE TEMP TABLE sessions (namespace text);
             CREATE TEMP TABLE meta (one boolean);
             SET search_path = pg_temp, hostile, dlock, pg_catalog",
        )
        .await;
    caller.open(1).await;
    let token = caller.take("key", 1, 11).await;
    holds!(caller.extend("key", token).await.is_some(), "not extended");
    let kept = caller.keep_alive(1, &[("key", token)]).await;
    holds!(kept.len() == 1, "{kept:?}");
    let revoked = caller.revoke("key", Some(token), 1).await;
    holds!(revoked.revoked, "{revoked:?}");
    let elsewhere: i64 = caller
        .value("SELECT (SELECT count(*) FROM pg_temp.locks) + (SELECT count(*) FROM hostile.locks)")
        .await;
    holds!(elsewhere == 0, "{elsewhere} rows elsewhere");
    Ok(())
}

/// F-12, backends test 64: it says that whatever has expired is still to come.
pub(crate) async fn an_operator_that_was_hijacked_decides_nothing(database: &Database) -> Verdict {
    let role = application(database);
    database.psql(&format!(
        "CREATE SCHEMA hostile AUTHORIZATION {role};
         CREATE FUNCTION hostile.always(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql
           AS 'SELECT true';
         CREATE OPERATOR hostile.> (LEFTARG = timestamptz, RIGHTARG = timestamptz,
           FUNCTION = hostile.always)"
    ));
    let mut caller = database.connect_as(&role).await;
    caller.run("SET search_path = hostile, pg_catalog").await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let hijacked: bool = caller
        .value("SELECT 'epoch'::timestamptz > clock_timestamp()")
        .await;
    holds!(hijacked, "the operator is not hijacked");
    caller.take("key", 1, 11).await;
    database.psql("UPDATE dlock.locks SET expires_at = clock_timestamp()");
    let next = caller.insert("key", 2, 21).await;
    holds!(next.outcome == "granted", "{next:?}");
    Ok(())
}

/// F-12, P12, P47, backends test 64.
pub(crate) async fn the_application_may_execute_and_nothing_else(database: &Database) -> Verdict {
    let role = application(database);
    let mut caller = database.connect_as(&role).await;
    let (problem, _) = caller.attach().await;
    holds!(problem.is_none(), "{problem:?}");
    for call in [
        "SELECT * FROM dlock.list_1('tests', '', NULL, 10)",
        "SELECT * FROM dlock.sessions_1('tests', NULL, 10)",
        "SELECT * FROM dlock.waiters_1('tests', 'key')",
        "SELECT * FROM dlock.revocations_1('tests', 'key', NULL, 10)",
        "SELECT * FROM dlock.look_1('tests', 'key', 1, gen_random_uuid())",
        "SELECT * FROM dlock.read_1('tests', 'key')",
        "SELECT * FROM dlock.diagnose_1()",
    ] {
        caller.run(call).await;
    }
    for call in writes() {
        caller.run(&call).await;
    }
    for forbidden in [
        "DELETE FROM dlock.locks",
        "UPDATE dlock.meta SET term = 0",
        "SELECT * FROM dlock.grants",
        "SELECT nextval('dlock.fencing_token_seq')",
        "SELECT setval('dlock.fencing_token_seq', 1)",
        "SELECT dlock.mint_1(0)",
        "SELECT dlock.raise_term_1(5, 1)",
        "SELECT dlock.lock_row_1('tests', 'key')",
        "SELECT dlock.insert_1('tests', 'key', 1, gen_random_uuid(), 'x', false, false)",
        "SELECT dlock.reap_1('tests', 10, NULL, 100)",
        "SELECT dlock.recover_1('tests', gen_random_uuid(), NULL, 0, 100)",
        "CREATE TABLE dlock.mine ()",
    ] {
        let refused = code(caller.try_run(forbidden).await);
        holds!(refused == "42501", "{forbidden}: {refused}");
    }
    let reaper = database.role("reaper");
    database.psql(&store_postgres::schema::grants(
        store_postgres::schema::Role::Reaper,
        &reaper,
    ));
    let mut caller = database.connect_as(&reaper).await;
    caller.attach().await;
    caller.reap(10, None).await;
    let refused = code(caller.try_insert("key", 1, 11, false).await);
    holds!(refused == "42501", "the reaper inserts: {refused}");
    Ok(())
}

/// F-12: also not by a function that was added and forgotten.
pub(crate) async fn nobody_may_do_anything_unless_told(database: &Database) -> Verdict {
    let role = database.role("nobody");
    let mut caller = database.connect().await;
    let allowed: i64 = caller
        .value(&format!(
            "SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'dlock'::regnamespace
                AND has_function_privilege('{role}', p.oid, 'EXECUTE')"
        ))
        .await;
    holds!(allowed == 0, "{allowed} functions");
    let unsafe_ones: i64 = caller
        .value(
            "SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'dlock'::regnamespace
                AND p.prosecdef
                AND NOT p.proconfig @> ARRAY['search_path=pg_catalog, pg_temp']",
        )
        .await;
    holds!(
        unsafe_ones == 0,
        "{unsafe_ones} without a search_path of their own"
    );
    let mut caller = database.connect_as(&role).await;
    let refused = code(caller.try_run("SELECT * FROM dlock.attach_1()").await);
    holds!(refused == "42501", "{refused}");
    Ok(())
}

/// Backends test 65, P24, B136.
pub(crate) async fn a_nondeterministic_collation_makes_no_keys_equal(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller
        .run(
            "CREATE COLLATION public.careless
               (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        )
        .await;
    let careless: bool = caller
        .value("SELECT 'Job' COLLATE public.careless = 'jöb' COLLATE public.careless")
        .await;
    holds!(careless, "the collation is not what it should be");
    caller.open(1).await;
    let keys = ["Job", "job", "jöb", "jo\u{308}b", "job "];
    for (number, key) in (1..).zip(keys) {
        let insert = caller.insert(key, 1, number).await;
        holds!(insert.outcome == "granted", "{key}: {insert:?}");
    }
    // Whoever hands the collation in is refused, and is not told of another's lock.
    for (number, key) in (11..).zip(["JOB", "job"]) {
        let call = format!(
            "SELECT outcome FROM dlock.try_insert_1('{NAMESPACE}', '{key}' COLLATE public.careless,
                                                    1, '{}', 'x', false, 100)",
            id(number)
        );
        let refused = code(caller.try_run(&call).await);
        holds!(refused == "42P22", "{key}: {refused}");
    }
    Ok(())
}

/// B107.
pub(crate) async fn the_time_zone_of_a_session_changes_nothing(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open_for(1, 60_000).await;
    let token = caller.take("key", 1, 11).await;
    for zone in ["UTC", "Europe/Amsterdam", "Asia/Kolkata", "Pacific/Apia"] {
        caller.run(&format!("SET timezone = '{zone}'")).await;
        let off: bool = caller
            .value(
                "SELECT abs(granted_at_ms - extract(epoch FROM clock_timestamp()) * 1000) < 60000
                    AND remaining_ms BETWEEN 1 AND 60000
                   FROM dlock.read_1('tests', 'key')",
            )
            .await;
        holds!(off, "{zone}");
        let left = caller.extend("key", token).await;
        holds!(left > Some(59_000), "{zone}: {left:?}");
    }
    Ok(())
}

/// A role with the rights of an application.
fn application(database: &Database) -> String {
    let role = database.role("application");
    database.psql(&store_postgres::schema::grants(
        store_postgres::schema::Role::Application,
        &role,
    ));
    role
}

/// A call of each function that writes.
fn writes() -> Vec<String> {
    let calls = [
        "open_session_1('tests', 1, '00000000-0000-0000-0000-000000001000', 'owner', 60000, 99)",
        "try_insert_1('tests', gen_random_uuid()::text, 1, gen_random_uuid(), 'x', true, 99)",
        "keep_alive_1('tests', 1, '{}', '{}', 99)",
        "extend_1('tests', 'key', 5, 99)",
        "release_1('tests', 'key', 5, true, 99)",
        "try_insert_many_1('tests', ARRAY[gen_random_uuid()::text, 'key'], '{1, 1}',
                           ARRAY[gen_random_uuid(), gen_random_uuid()], '{x, x}', 99)",
        "release_many_1('tests', '{key, other}', '{5, 6}', '{true, false}', 99)",
        "abandon_1('tests', 'key', 1, gen_random_uuid(), 99)",
        "revoke_1('tests', 'key', NULL, gen_random_uuid(), 'by', 'reason', 99)",
        "close_session_1('tests', 2, 99)",
    ];
    calls
        .map(|call| format!("SELECT * FROM dlock.{call}"))
        .into()
}
