//! What calls cost: pages, numbers and transactions that are not to be spent.

use super::support::{Caller, Database, NAMESPACE, Verdict, cases, holds, id};

cases!(
    an_answer_that_changes_nothing_writes_nothing,
    renewals_stay_on_their_page,
    grants_and_releases_stay_on_their_page,
    no_call_scans_a_table_or_compiles_its_plan,
);

/// Backends test 52, P20, Q1: no WAL, no transaction, no number.
pub(crate) async fn an_answer_that_changes_nothing_writes_nothing(database: &Database) -> Verdict {
    const SEQUENCES: &str = "SELECT (SELECT last_value FROM dlock.fencing_token_seq)
                                  + (SELECT last_value FROM dlock.ticket_seq)";
    let mut caller = database.connect().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let token = caller.take("held", 1, 11).await;
    caller.enqueue("held", 2, 21).await;
    let gone = caller.take("free", 1, 12).await;
    caller.release("free", gone).await;
    let insert = |session: i64, attempt: u128, queue: bool| {
        format!(
            "try_insert_1('{NAMESPACE}', 'held', {session}, '{}', 'x', {queue}, 100)",
            id(attempt)
        )
    };
    let calls = [
        ("held", insert(3, 31, false)),
        ("queued", insert(2, 21, true)),
        ("granted before", insert(1, 11, false)),
        ("session gone", insert(9, 91, false)),
        (
            "release of nothing",
            format!("release_1('{NAMESPACE}', 'free', {gone}, true, 100)"),
        ),
        (
            "extend of what is gone",
            format!("extend_1('{NAMESPACE}', 'free', {gone}, 100)"),
        ),
        (
            "revoke of what is gone",
            format!(
                "revoke_1('{NAMESPACE}', 'new', 5, '{}', '', '', 100)",
                id(1)
            ),
        ),
        (
            "look",
            format!("look_1('{NAMESPACE}', 'held', 2, '{}')", id(21)),
        ),
        ("read", format!("read_1('{NAMESPACE}', 'held')")),
        ("list", format!("list_1('{NAMESPACE}', '', NULL, 10)")),
        ("attach", "attach_1()".to_owned()),
        ("diagnose", "diagnose_1()".to_owned()),
    ];
    // Hint bits and pruning are not of the call.
    caller.run("VACUUM").await;
    let before: i64 = caller.value(SEQUENCES).await;
    for (what, call) in calls {
        caller.run("BEGIN").await;
        for _ in 0..100 {
            let wal = wal_records(&mut caller, &call).await;
            holds!(wal == 0, "{what}: {wal} records of WAL");
        }
        let assigned: Option<String> = caller
            .value("SELECT pg_current_xact_id_if_assigned()::text")
            .await;
        caller.run("COMMIT").await;
        holds!(assigned.is_none(), "{what}: a transaction id");
    }
    let after: i64 = caller.value(SEQUENCES).await;
    holds!(after == before, "{} numbers are spent", after - before);
    holds!(
        caller.extend("held", token).await.is_some(),
        "the grant is gone"
    );
    Ok(())
}

/// P25: more than 95 of 100.
pub(crate) async fn renewals_stay_on_their_page(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let mut grants = Vec::new();
    for key in ["one", "two", "three"] {
        grants.push((key, caller.take(key, 1, 11).await));
    }
    caller.run("SELECT pg_stat_reset()").await;
    for _ in 0..500 {
        caller.keep_alive(1, &grants).await;
        caller.extend(grants[0].0, grants[0].1).await;
    }
    hot(&mut caller, "locks", 1_500).await?;
    hot(&mut caller, "sessions", 1_000).await
}

/// P25.
pub(crate) async fn grants_and_releases_stay_on_their_page(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller.take("other", 1, 9_999).await;
    caller.run("SELECT pg_stat_reset()").await;
    for attempt in 1..=500 {
        let token = caller.take("key", 1, attempt).await;
        caller.release("key", token).await;
    }
    hot(&mut caller, "locks", 900).await
}

/// F-11: the plans were made while every table was one page.
pub(crate) async fn no_call_scans_a_table_or_compiles_its_plan(database: &Database) -> Verdict {
    const SCANS: &str = "SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_xact_user_tables
                          WHERE schemaname = 'dlock' AND relname <> 'fencing_token_seq'";
    let mut caller = database.connect().await;
    caller
        .run(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;
             SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on;
             SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = 0;
             SET jit_optimize_above_cost = 0",
        )
        .await;
    caller.open(1).await;
    caller.open(2).await;
    for attempt in 1..=10 {
        one_of_each(&mut caller, attempt).await?;
    }
    caller.run("SET auto_explain.log_min_duration = -1").await;
    caller
        .run(&format!(
            "INSERT INTO dlock.locks (namespace, lock_key)
             SELECT '{NAMESPACE}', 'many ' || g FROM generate_series(1, 20000) g;
             INSERT INTO dlock.sessions
               (namespace, session, instance, owner, ttl_ms, opened_at, expires_at)
             SELECT '{NAMESPACE}', 1000 + g, gen_random_uuid(), 'o', 60000, clock_timestamp(),
                    clock_timestamp() + interval '1 h'
               FROM generate_series(1, 20000) g;
             INSERT INTO dlock.spent SELECT '{NAMESPACE}', 1000 + g, gen_random_uuid(),
                    clock_timestamp() FROM generate_series(1, 20000) g;
             INSERT INTO dlock.waiters
               (namespace, lock_key, ticket, session, incarnation, attempt, queued_at)
             SELECT '{NAMESPACE}', 'many ' || g, g, 5, 5, gen_random_uuid(), clock_timestamp()
               FROM generate_series(1, 20000) g"
        ))
        .await;
    caller.run("SET auto_explain.log_min_duration = 0").await;
    for attempt in 101..=103 {
        caller.run("BEGIN").await;
        let before: i64 = caller.value(SCANS).await;
        one_of_each(&mut caller, attempt).await?;
        let scans: i64 = caller.value::<i64>(SCANS).await - before;
        holds!(scans == 0, "{scans} tables were scanned");
        caller.run("COMMIT").await;
    }
    caller.run("SET auto_explain.log_min_duration = -1").await;
    let log = database.log();
    holds!(
        log.contains("fencing_token_seq") && log.contains("Index Scan"),
        "no plans are logged"
    );
    let prefix = format!("{} ", database.name());
    let compiled = log
        .split(&prefix)
        .filter(|entry| entry.contains("dlock.locks") && entry.contains("JIT:"))
        .count();
    holds!(compiled == 0, "{compiled} plans were compiled");
    Ok(())
}

/// What the store sets when it connects, for the functions that have no settings of their own.
const AS_THE_STORE: &str = "SET enable_seqscan = off; SET jit = off";
const AS_ANYBODY: &str = "SET enable_seqscan = on; SET jit = on";

/// Calls everything that is called often.
async fn one_of_each(caller: &mut Caller, attempt: u128) -> Verdict {
    caller.run(AS_THE_STORE).await;
    let token = caller.take("key", 1, attempt).await;
    caller.enqueue("key", 2, 1_000 + attempt).await;
    caller.run(AS_ANYBODY).await;
    let wishes = [("a", 1, 2_000 + attempt), ("b", 1, 3_000 + attempt)];
    let (tokens, _) = caller.insert_many(&wishes).await.unwrap();
    holds!(tokens.len() == 2, "{tokens:?}");
    let grants = [("a", tokens[&0]), ("b", tokens[&1])];
    let ended = caller.release_many(&grants, true).await.unwrap();
    holds!(ended.len() == 2, "{ended:?}");
    caller.keep_alive(1, &[("key", token)]).await;
    caller.extend("key", token).await;
    caller.read("key").await;
    caller
        .run(&format!(
            "SELECT * FROM dlock.look_1('{NAMESPACE}', 'key', 2, '{}')",
            id(1_000 + attempt)
        ))
        .await;
    caller.run(AS_THE_STORE).await;
    caller
        .release_settled("key", token, attempt.is_multiple_of(2))
        .await;
    caller.run(AS_ANYBODY).await;
    caller.abandon("key", 2, 1_000 + attempt).await;
    caller.revoke("revoked", None, attempt).await;
    Ok(())
}

/// How many records of WAL a call writes.
async fn wal_records(caller: &mut Caller, call: &str) -> i64 {
    let explain = format!("EXPLAIN (ANALYZE, WAL, TIMING OFF) SELECT * FROM dlock.{call}");
    let plan = caller.lines(&explain).await.join("\n");
    // Without a record it says nothing of them.
    let records = plan.split_once("WAL: records=").map(|(_, rest)| rest);
    let digits = records.and_then(|rest| rest.split([' ', '\n']).next());
    digits.map_or(0, |digits| digits.parse().unwrap())
}

/// That nearly all of at least so many updates of a table stayed on their page.
async fn hot(caller: &mut Caller, table: &str, least: i64) -> Verdict {
    caller.run("SELECT pg_stat_force_next_flush()").await;
    let of = |column: &str| {
        format!("SELECT {column} FROM pg_stat_user_tables WHERE relid = 'dlock.{table}'::regclass")
    };
    let updates: i64 = caller.value(&of("n_tup_upd")).await;
    let hot: i64 = caller.value(&of("n_tup_hot_upd")).await;
    holds!(updates >= least, "{table}: only {updates} updates");
    holds!(hot * 100 > updates * 95, "{table}: {hot} of {updates}");
    Ok(())
}
