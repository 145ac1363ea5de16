//! Calls that wait for the row of a key while something else is committed. Each has to decide by
//! what it finds after it has waited, not by what it saw before.

use super::support::{Database, NAMESPACE, Verdict, cases, holds, id};

cases!(
    an_attempt_given_up_while_it_waits_is_not_granted,
    an_attempt_given_up_while_its_grant_is_on_the_way_holds_nothing,
    nothing_is_granted_to_a_session_that_closes_while_its_insert_waits,
    nobody_who_waits_barges_past_a_place_taken_meanwhile,
    who_waited_for_a_grant_is_told_of_its_holder,
    two_copies_of_an_insert_take_one_place,
    a_release_that_waits_for_an_enqueuer_wakes_it,
    two_first_inserts_of_a_key_make_one_grant,
    a_grant_of_a_session_closed_before_the_commit_is_dead_on_arrival,
    a_lock_that_expires_while_its_row_is_awaited_is_granted,
    a_row_that_is_held_too_long_is_an_error_and_changes_nothing,
    a_token_that_waited_for_the_row_is_above_the_one_granted_meanwhile,
);

/// Makes a key that was held once and is free.
const FREED: &str = "freed";

/// F-1, ABANDON-1: the abandon returns before the insert that it concerns has its row.
pub(crate) async fn an_attempt_given_up_while_it_waits_is_not_granted(
    database: &Database,
) -> Verdict {
    let [mut holder, mut late, mut watch] = database.callers().await;
    holder.open(1).await;
    free(&mut holder, FREED, 1).await;
    holder.run("BEGIN").await;
    holder.abandon(FREED, 1, 7).await;
    let waiter = late.pid();
    let (insert, ()) = tokio::join!(biased; late.insert(FREED, 1, 7), async {
        watch.until_waits(waiter).await;
        holder.run("COMMIT").await;
    });
    holds!(insert.outcome == "ended", "{insert:?}");
    holds!(watch.read(FREED).await.is_none(), "it is held");
    Ok(())
}

/// ABANDON-1: the insert was first, and is not committed when the abandon comes.
pub(crate) async fn an_attempt_given_up_while_its_grant_is_on_the_way_holds_nothing(
    database: &Database,
) -> Verdict {
    let [mut inserting, mut abandoning, mut watch] = database.callers().await;
    inserting.open(1).await;
    free(&mut inserting, FREED, 1).await;
    inserting.run("BEGIN").await;
    inserting.take(FREED, 1, 7).await;
    // Without its wait the abandon would return before the grant is there.
    abandoning.lock_ms = 300;
    let gave_up = abandoning
        .try_run(&format!(
            "SELECT dlock.abandon_1('{NAMESPACE}', '{FREED}', 1, '{}', 300)",
            id(7)
        ))
        .await;
    inserting.run("COMMIT").await;
    if gave_up.is_err() {
        // It could not say that the attempt is over, and did not. Now it can.
        abandoning.abandon(FREED, 1, 7).await;
    }
    holds!(watch.read(FREED).await.is_none(), "the attempt holds");
    let again = inserting.insert(FREED, 1, 7).await;
    holds!(again.outcome == "ended", "{again:?}");
    Ok(())
}

/// F-1, INSERT-8.
pub(crate) async fn nothing_is_granted_to_a_session_that_closes_while_its_insert_waits(
    database: &Database,
) -> Verdict {
    let [mut holder, mut late, mut closing, mut watch] = database.callers().await;
    for session in [1, 2] {
        holder.open(session).await;
    }
    free(&mut holder, FREED, 1).await;
    holder.run("BEGIN").await;
    lock(&mut holder, FREED).await;
    let waiter = late.pid();
    let (insert, ()) = tokio::join!(biased; late.insert(FREED, 2, 7), async {
        watch.until_waits(waiter).await;
        closing.close(2).await;
        holder.run("COMMIT").await;
    });
    holds!(insert.outcome == "session_gone", "{insert:?}");
    holds!(watch.read(FREED).await.is_none(), "it is held");
    Ok(())
}

/// F-1, INSERT-4: the insert saw the key free and nobody in line before it waited.
pub(crate) async fn nobody_who_waits_barges_past_a_place_taken_meanwhile(
    database: &Database,
) -> Verdict {
    let [mut first, mut late, mut watch] = database.callers().await;
    for session in [1, 2, 3] {
        first.open(session).await;
    }
    free(&mut first, FREED, 1).await;
    first.run("BEGIN").await;
    let token = first.take(FREED, 1, 11).await;
    let place = first.enqueue(FREED, 2, 12).await;
    holds!(place.outcome == "queued", "{place:?}");
    first.release(FREED, token).await;
    let waiter = late.pid();
    let (insert, ()) = tokio::join!(biased; late.insert(FREED, 3, 13), async {
        watch.until_waits(waiter).await;
        first.run("COMMIT").await;
    });
    holds!(insert.outcome == "held", "{insert:?}");
    holds!(
        insert.wake_attempt == Some(id(12)),
        "the first in line is not called: {insert:?}"
    );
    let next = first.enqueue(FREED, 2, 12).await;
    holds!(next.outcome == "granted", "{next:?}");
    Ok(())
}

/// INV-01, P21: the holder that it tells of is the new one.
pub(crate) async fn who_waited_for_a_grant_is_told_of_its_holder(database: &Database) -> Verdict {
    let [mut first, mut late, mut watch] = database.callers().await;
    for session in [1, 2] {
        first.open(session).await;
    }
    free(&mut first, FREED, 1).await;
    first.run("BEGIN").await;
    let token = first.take(FREED, 1, 11).await;
    let waiter = late.pid();
    let (insert, ()) = tokio::join!(biased; late.insert(FREED, 2, 12), async {
        watch.until_waits(waiter).await;
        first.run("COMMIT").await;
    });
    holds!(insert.outcome == "held", "{insert:?}");
    holds!(insert.holder == Some(token), "{insert:?}");
    Ok(())
}

/// F-1, INSERT-3: neither saw the place of the other before it waited.
pub(crate) async fn two_copies_of_an_insert_take_one_place(database: &Database) -> Verdict {
    let [mut holder, mut one, mut other, mut watch] = database.callers().await;
    for session in [1, 2] {
        holder.open(session).await;
    }
    holder.take("held", 1, 11).await;
    holder.run("BEGIN").await;
    lock(&mut holder, "held").await;
    let waiters = [one.pid(), other.pid()];
    let (one, other, ()) = tokio::join!(
        biased;
        one.enqueue("held", 2, 12),
        other.enqueue("held", 2, 12),
        async {
            for waiter in waiters {
                watch.until_waits(waiter).await;
            }
            holder.run("COMMIT").await;
        }
    );
    holds!(
        one.place.is_some() && one.place == other.place,
        "{one:?} {other:?}"
    );
    let places: i64 = watch.value("SELECT count(*) FROM dlock.waiters").await;
    holds!(places == 1, "{places} places");
    Ok(())
}

/// F-1, INV-08: the place is taken, and not committed, when the release comes.
pub(crate) async fn a_release_that_waits_for_an_enqueuer_wakes_it(database: &Database) -> Verdict {
    let [mut holder, mut joining, mut watch] = database.callers().await;
    for session in [1, 2] {
        holder.open(session).await;
    }
    let token = holder.take("held", 1, 11).await;
    joining.run("BEGIN").await;
    let place = joining.enqueue("held", 2, 12).await;
    holds!(place.outcome == "queued", "{place:?}");
    let releasing = holder.pid();
    let ((released, wake), ()) = tokio::join!(biased; holder.release("held", token), async {
        // A release that does not wait is found out by whom it wakes.
        let look = format!(
            "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), pg_sleep(0.3)
               FROM pg_stat_activity WHERE pid = {releasing}"
        );
        watch.value::<i64>(&look).await;
        joining.run("COMMIT").await;
    });
    holds!(released, "not released");
    holds!(wake == Some(id(12)), "woken: {wake:?}");
    Ok(())
}

/// P1: on the path that makes the row.
pub(crate) async fn two_first_inserts_of_a_key_make_one_grant(database: &Database) -> Verdict {
    let [mut first, mut late, mut watch] = database.callers().await;
    for session in [1, 2] {
        first.open(session).await;
    }
    for (end, outcome) in [("ROLLBACK", "granted"), ("COMMIT", "held")] {
        let key = format!("new {end}");
        first.run("BEGIN").await;
        let token = first.take(&key, 1, 11).await;
        let waiter = late.pid();
        let (insert, ()) = tokio::join!(biased; late.insert(&key, 2, 12), async {
            watch.until_waits(waiter).await;
            first.run(end).await;
        });
        holds!(insert.outcome == outcome, "{end}: {insert:?}");
        holds!(
            insert.token.is_none_or(|later| later > token),
            "{end}: {insert:?} after {token}"
        );
    }
    Ok(())
}

/// F-14, INV-02: the session closes between the last look at it and the commit of its grant.
pub(crate) async fn a_grant_of_a_session_closed_before_the_commit_is_dead_on_arrival(
    database: &Database,
) -> Verdict {
    let [mut first, mut closing] = database.callers().await;
    for session in [1, 2] {
        first.open(session).await;
    }
    first.run("BEGIN").await;
    let token = first.take("key", 1, 11).await;
    closing.close(1).await;
    first.run("COMMIT").await;
    holds!(closing.read("key").await.is_none(), "the grant lives");
    holds!(
        closing.extend("key", token).await.is_none(),
        "it is extended"
    );
    let next = closing.insert("key", 2, 12).await;
    holds!(next.outcome == "granted", "{next:?}");
    holds!(next.token > Some(token), "{next:?} after {token}");
    Ok(())
}

/// P14, B106: every time is asked when it counts, not when the transaction or the call began.
pub(crate) async fn a_lock_that_expires_while_its_row_is_awaited_is_granted(
    database: &Database,
) -> Verdict {
    let [mut first, mut late, mut watch] = database.callers().await;
    first.open(1).await;
    late.open_for(2, 1_000).await;
    first.take("key", 1, 11).await;
    first.run("BEGIN").await;
    lock(&mut first, "key").await;
    first
        .run("UPDATE dlock.locks SET expires_at = clock_timestamp() + interval '100 ms'")
        .await;
    let waiter = late.pid();
    late.run("BEGIN").await;
    let (insert, ()) = tokio::join!(biased; late.enqueue("key", 2, 12), async {
        // It waits where it locks the row to take a place.
        watch.until_waits(waiter).await;
        watch.run("SELECT pg_sleep(0.3)").await;
        first.run("COMMIT").await;
    });
    holds!(insert.outcome == "granted", "{insert:?}");
    // A session that is opened late in an old transaction has its whole time as well.
    let (outcome, left) = late.open_for(3, 1_000).await;
    holds!(outcome == "open" && left > Some(900), "{outcome} {left:?}");
    Ok(())
}

/// P19: the wait is bounded by the call itself.
pub(crate) async fn a_row_that_is_held_too_long_is_an_error_and_changes_nothing(
    database: &Database,
) -> Verdict {
    let [mut first, mut late] = database.callers().await;
    for session in [1, 2] {
        first.open(session).await;
    }
    free(&mut first, FREED, 1).await;
    first.run("BEGIN").await;
    lock(&mut first, FREED).await;
    late.lock_ms = 50;
    // What a role has set is overruled.
    late.run("SET lock_timeout = '1h'").await;
    let refused = super::support::code(late.try_insert(FREED, 2, 12, true).await);
    holds!(refused == "55P03", "{refused}");
    first.run("COMMIT").await;
    let places: i64 = first.value("SELECT count(*) FROM dlock.waiters").await;
    holds!(places == 0, "{places} places");
    let lock_timeout: String = late.value("SELECT current_setting('lock_timeout')").await;
    holds!(lock_timeout == "1h", "{lock_timeout}");
    Ok(())
}

/// Backends test 42, P1, INV-04: a number that was drawn before the wait would be the smaller one.
pub(crate) async fn a_token_that_waited_for_the_row_is_above_the_one_granted_meanwhile(
    database: &Database,
) -> Verdict {
    let [mut first, mut late, mut watch] = database.callers().await;
    for session in [1, 2] {
        first.open(session).await;
    }
    free(&mut first, FREED, 1).await;
    first.run("BEGIN").await;
    lock(&mut first, FREED).await;
    let waiter = late.pid();
    let (insert, token) = tokio::join!(biased; late.insert(FREED, 2, 12), async {
        watch.until_waits(waiter).await;
        let token = first.take(FREED, 1, 11).await;
        first.release(FREED, token).await;
        first.run("COMMIT").await;
        token
    });
    holds!(insert.outcome == "granted", "{insert:?}");
    holds!(insert.token > Some(token), "{insert:?} after {token}");
    Ok(())
}

/// Takes a lock once, and gives it back.
async fn free(caller: &mut super::support::Caller, key: &str, session: i64) {
    let token = caller.take(key, session, 0xfeed).await;
    caller.release(key, token).await;
}

/// Locks the row of a key, in the transaction that is open.
async fn lock(caller: &mut super::support::Caller, key: &str) {
    let sql = format!("SELECT FROM dlock.locks WHERE lock_key = '{key}' FOR UPDATE");
    caller.run(&sql).await;
}
