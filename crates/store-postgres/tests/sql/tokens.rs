//! Tokens: they rise for each key whatever becomes of the sequence, the rows and the attempts.

use super::support::{Database, Verdict, cases, code, holds};

cases!(
    an_attempt_is_granted_once,
    an_attempt_that_was_given_up_is_never_granted,
    an_attempt_that_was_overwritten_stays_remembered,
    an_attempt_of_a_settled_release_leaves_nothing_behind,
    an_attempt_is_remembered_after_its_row_is_forgotten,
    tokens_rise_after_the_sequence_was_set_back,
    tokens_rise_above_those_of_forgotten_rows,
    a_revoke_raises_the_floor_above_the_token,
    a_revoke_ends_what_it_names_and_nothing_else,
    a_revoke_asked_twice_is_done_once,
    two_copies_of_a_revoke_are_done_once,
    an_altered_sequence_is_refused,
    an_unlogged_table_is_refused,
    the_end_of_the_counter_is_an_error,
);

/// INSERT-3, INSERT-5, INSERT-6.
pub(crate) async fn an_attempt_is_granted_once(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    let repeated = caller.insert("key", 1, 11).await;
    holds!(repeated.token == Some(token), "{repeated:?} after {token}");
    let another = caller.insert("key", 1, 12).await;
    holds!(another.outcome == "held", "{another:?}");
    caller.release_settled("key", token, false).await;
    let late = caller.insert("key", 1, 11).await;
    holds!(late.outcome == "ended", "{late:?}");
    Ok(())
}

/// INSERT-5, ABANDON-1: the insert arrives after it.
pub(crate) async fn an_attempt_that_was_given_up_is_never_granted(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller.abandon("key", 1, 11).await;
    caller.abandon("key", 1, 11).await;
    for queue in [false, true] {
        let late = caller.try_insert("key", 1, 11, queue).await.unwrap();
        holds!(late.outcome == "ended", "{late:?}");
    }
    let other = caller.insert("key", 1, 12).await;
    holds!(other.outcome == "granted", "{other:?}");
    Ok(())
}

/// INV-07, F-7: another grant has taken its place in the row.
pub(crate) async fn an_attempt_that_was_overwritten_stays_remembered(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let token = caller.take("key", 1, 11).await;
    caller.release_settled("key", token, false).await;
    let token = caller.take("key", 1, 12).await;
    caller.release_settled("key", token, false).await;
    for attempt in [11, 12] {
        let late = caller.insert("key", 1, attempt).await;
        holds!(late.outcome == "ended", "{attempt}: {late:?}");
    }
    Ok(())
}

/// What is settled costs nothing.
pub(crate) async fn an_attempt_of_a_settled_release_leaves_nothing_behind(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    for attempt in 11..15 {
        let token = caller.take("key", 1, attempt).await;
        caller.release("key", token).await;
    }
    let spent: i64 = caller.value("SELECT count(*) FROM dlock.spent").await;
    let attempt: i64 = caller
        .value("SELECT count(*) FROM dlock.locks WHERE attempt IS NOT NULL")
        .await;
    holds!(spent == 0 && attempt == 0, "{spent} {attempt}");
    Ok(())
}

/// F-7 (b).
pub(crate) async fn an_attempt_is_remembered_after_its_row_is_forgotten(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let token = caller.take("key", 1, 11).await;
    caller.release_settled("key", token, false).await;
    forget_idle_rows(&mut caller).await?;
    let late = caller.insert("key", 1, 11).await;
    holds!(late.outcome == "ended", "{late:?}");
    Ok(())
}

/// Backends test 44, P3, INV-04: and the overruling is told.
pub(crate) async fn tokens_rise_after_the_sequence_was_set_back(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 1000)")
        .await;
    let first = caller.insert("key", 1, 11).await;
    holds!(first.lifted == Some(false), "{first:?}");
    caller.release("key", first.token.unwrap()).await;
    let floor = caller.revoke("floored", None, 1).await.floor;
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 1)")
        .await;
    let diagnosed: i64 = caller
        .value("SELECT count(*) FROM dlock.diagnose_1() WHERE id = 'counter_behind'")
        .await;
    holds!(diagnosed == 1, "no finding");
    let second = caller.insert("key", 1, 12).await;
    holds!(second.token > first.token, "{second:?} after {first:?}");
    holds!(second.lifted == Some(true), "{second:?}");
    let floored = caller.insert("floored", 1, 13).await;
    holds!(floored.token > floor, "{floored:?} at the floor {floor:?}");
    let revoked = caller.revoke("key", None, 2).await;
    holds!(revoked.floor > second.token, "{revoked:?} after {second:?}");
    holds!(revoked.lifted == Some(true), "{revoked:?}");
    Ok(())
}

/// F-7 (a), REAP-1.
pub(crate) async fn tokens_rise_above_those_of_forgotten_rows(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 1000)")
        .await;
    let token = caller.take("key", 1, 11).await;
    caller.release("key", token).await;
    let floor = caller.revoke("floored", None, 1).await.floor;
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 1)")
        .await;
    forget_idle_rows(&mut caller).await?;
    let other = caller.insert("other", 1, 14).await;
    holds!(other.token > Some(token), "{other:?} after {token}");
    // A row of the same name that was never held.
    caller.abandon("key", 1, 99).await;
    let next = caller.insert("key", 1, 12).await;
    holds!(next.token > Some(token), "{next:?} after {token}");
    let floored = caller.insert("floored", 1, 13).await;
    holds!(floored.token > floor, "{floored:?} at the floor {floor:?}");
    Ok(())
}

/// REVOKE-1, REVOKE-4, REVOKE-5.
pub(crate) async fn a_revoke_raises_the_floor_above_the_token(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let token = caller.take("key", 1, 11).await;
    let revoked = caller.revoke("key", None, 1).await;
    holds!(
        revoked.revoked && revoked.previous_token == Some(token),
        "{revoked:?}"
    );
    holds!(
        revoked.previous_owner.as_deref() == Some("owner"),
        "{revoked:?}"
    );
    holds!(revoked.floor > Some(token), "{revoked:?}");
    let free = caller.revoke("key", None, 2).await;
    holds!(!free.revoked && free.previous_token.is_none(), "{free:?}");
    holds!(free.floor > revoked.floor, "{free:?} after {revoked:?}");
    let next = caller.insert("key", 1, 12).await;
    holds!(next.token > free.floor, "{next:?} at {free:?}");
    let late = caller.insert("key", 1, 11).await;
    holds!(late.outcome == "ended", "{late:?}");
    Ok(())
}

/// REVOKE-3, INV-06.
pub(crate) async fn a_revoke_ends_what_it_names_and_nothing_else(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let unknown = caller.revoke("never seen", Some(5), 1).await;
    holds!(!unknown.revoked && unknown.floor.is_none(), "{unknown:?}");
    let first = caller.take("key", 1, 11).await;
    caller.release("key", first).await;
    let second = caller.take("key", 1, 12).await;
    let missed = caller.revoke("key", Some(first), 2).await;
    holds!(!missed.revoked && missed.floor.is_none(), "{missed:?}");
    holds!(caller.read("key").await == Some(second), "it ended another");
    let met = caller.revoke("key", Some(second), 3).await;
    holds!(met.revoked, "{met:?}");
    let missed = caller.revoke("key", Some(second), 4).await;
    holds!(
        !missed.revoked && missed.floor == met.floor,
        "{missed:?} after {met:?}"
    );
    let written: i64 = caller.value("SELECT count(*) FROM dlock.revocations").await;
    let rows: i64 = caller.value("SELECT count(*) FROM dlock.locks").await;
    holds!(written == 1 && rows == 1, "{written} records, {rows} rows");
    Ok(())
}

/// REVOKE-2, RECORDS-1.
pub(crate) async fn a_revoke_asked_twice_is_done_once(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller.take("key", 1, 11).await;
    let first = caller.revoke("key", None, 1).await;
    let next = caller.take("key", 1, 12).await;
    let again = caller.revoke("key", None, 1).await;
    holds!(
        again.revoked && again.floor == first.floor,
        "{again:?} after {first:?}"
    );
    holds!(
        again.previous_token == first.previous_token,
        "{again:?} after {first:?}"
    );
    holds!(caller.read("key").await == Some(next), "it was done again");
    // The id is a wish about one key.
    let other = caller.revoke("other", None, 1).await;
    holds!(other.floor > again.floor, "{other:?}");
    caller.revoke("key", Some(next), 2).await;
    let serials: Vec<i64> = caller
        .value("SELECT array_agg(serial) FROM dlock.revocations_1('tests', 'key', NULL, 10)")
        .await;
    holds!(serials == [2, 1], "{serials:?}");
    let serials: Vec<i64> = caller
        .value("SELECT array_agg(serial) FROM dlock.revocations_1('tests', 'key', 2, 10)")
        .await;
    holds!(serials == [1], "{serials:?}");
    Ok(())
}

/// REVOKE-2: neither sees the other before it waits.
pub(crate) async fn two_copies_of_a_revoke_are_done_once(database: &Database) -> Verdict {
    let [mut one, mut other, mut watch] = database.callers().await;
    one.open(1).await;
    one.take("key", 1, 11).await;
    one.run("BEGIN").await;
    let first = one.revoke("key", None, 1).await;
    let waiter = other.pid();
    let (second, ()) = tokio::join!(biased; other.revoke("key", None, 1), async {
        watch.until_waits(waiter).await;
        one.run("COMMIT").await;
    });
    holds!(
        second.revoked && second.floor == first.floor,
        "{second:?} after {first:?}"
    );
    Ok(())
}

/// Backends test 45, P5.
pub(crate) async fn an_altered_sequence_is_refused(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    let (problem, warning) = caller.attach().await;
    holds!(
        problem.is_none() && warning.is_none(),
        "{problem:?} {warning:?}"
    );
    for (altered, mended) in [
        ("CACHE 50", "CACHE 1"),
        ("CYCLE", "NO CYCLE"),
        ("INCREMENT 2", "INCREMENT 1"),
        ("NO MAXVALUE", "MAXVALUE 17592186044415"),
    ] {
        caller
            .run(&format!("ALTER SEQUENCE dlock.fencing_token_seq {altered}"))
            .await;
        let (problem, _) = caller.attach().await;
        holds!(problem.is_some(), "{altered} is not noticed");
        let critical: i64 = caller
            .value("SELECT count(*) FROM dlock.diagnose_1() WHERE severity = 'critical'")
            .await;
        holds!(critical == 1, "{altered} is not found");
        caller
            .run(&format!("ALTER SEQUENCE dlock.fencing_token_seq {mended}"))
            .await;
    }
    let (problem, _) = caller.attach().await;
    holds!(problem.is_none(), "{problem:?}");
    Ok(())
}

/// P8.
pub(crate) async fn an_unlogged_table_is_refused(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller
        .run("ALTER SEQUENCE dlock.fencing_token_seq SET UNLOGGED")
        .await;
    let (problem, _) = caller.attach().await;
    holds!(problem.is_some(), "an unlogged sequence");
    caller
        .run("ALTER SEQUENCE dlock.fencing_token_seq SET LOGGED")
        .await;
    caller.run("ALTER TABLE dlock.spent SET UNLOGGED").await;
    let (problem, _) = caller.attach().await;
    holds!(problem.is_some(), "an unlogged table");
    Ok(())
}

/// K-11: an error and no slide into the next term.
pub(crate) async fn the_end_of_the_counter_is_an_error(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 17592186044414)")
        .await;
    let last = caller.take("key", 1, 11).await;
    holds!(last & 17_592_186_044_415 == 17_592_186_044_415, "{last}");
    caller.release("key", last).await;
    let refused = code(caller.try_insert("key", 1, 12, false).await);
    holds!(refused == "2200H", "{refused}");
    holds!(caller.read("key").await.is_none(), "something is held");
    caller
        .run("UPDATE dlock.meta SET term = 524287, timeline_seen = 0")
        .await;
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 1)")
        .await;
    let refused = code(caller.try_insert("key", 1, 13, false).await);
    holds!(refused == "2200H", "{refused}");
    Ok(())
}

/// Has the reaper delete the rows of all free keys.
async fn forget_idle_rows(caller: &mut super::support::Caller) -> Verdict {
    caller
        .run(
            "UPDATE dlock.meta SET idle = '0';
             UPDATE dlock.locks SET expires_at = 'epoch' WHERE NOT held",
        )
        .await;
    caller.reap(100, None).await;
    let left: i64 = caller
        .value("SELECT count(*) FROM dlock.locks WHERE NOT held AND floor IS NULL")
        .await;
    holds!(left == 0, "{left} rows are left");
    Ok(())
}
