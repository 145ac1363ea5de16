//! Places in the queue.

use super::support::{Database, INSTANCE, NAMESPACE, Verdict, cases, holds, id};

cases!(
    nobody_but_the_first_in_line_is_granted,
    a_place_keeps_its_number_and_tells_how_many_stand_before_it,
    whoever_frees_a_key_calls_the_first_in_line,
    a_channel_is_that_of_the_store_object_that_waits,
    one_that_was_called_and_does_not_come_loses_its_place_for_good,
    one_that_has_time_to_come_keeps_its_place,
    a_call_of_a_clock_that_stepped_back_counts_from_now,
    the_dead_are_passed_over,
    a_first_in_line_that_is_just_renewed_is_not_passed_over,
    a_place_given_up_calls_the_next,
    tickets_rise_also_when_their_counter_went_back,
    a_look_tells_what_a_waiter_has_to_know,
);

/// INSERT-4, INSERT-7.
pub(crate) async fn nobody_but_the_first_in_line_is_granted(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3, 4] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    caller.release("key", token).await;
    let without_place = caller.insert("key", 4, 41).await;
    holds!(without_place.outcome == "held", "{without_place:?}");
    let second = caller.enqueue("key", 3, 31).await;
    holds!(second.outcome == "queued", "{second:?}");
    let first = caller.enqueue("key", 2, 21).await;
    holds!(first.outcome == "granted", "{first:?}");
    let left: i64 = caller.value("SELECT count(*) FROM dlock.waiters").await;
    holds!(left == 1, "{left} places");
    Ok(())
}

/// INSERT-3.
pub(crate) async fn a_place_keeps_its_number_and_tells_how_many_stand_before_it(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3, 4] {
        caller.open(session).await;
    }
    caller.take("key", 1, 11).await;
    let first = caller.enqueue("key", 2, 21).await;
    let second = caller.enqueue("key", 3, 31).await;
    let third = caller.enqueue("key", 4, 41).await;
    holds!(
        first.place < second.place && second.place < third.place,
        "{first:?} {third:?}"
    );
    let ahead = [first.ahead, second.ahead, third.ahead];
    holds!(ahead == [Some(0), Some(1), Some(2)], "{ahead:?}");
    caller.close(2).await;
    // Also where it is not asked for again.
    let third_again = caller.insert("key", 4, 41).await;
    holds!(third_again.outcome == "queued", "{third_again:?}");
    holds!(
        third_again.place == third.place,
        "{third_again:?} {third:?}"
    );
    holds!(
        third_again.ahead == Some(1),
        "the dead one counts: {third_again:?}"
    );
    Ok(())
}

/// INV-08.
pub(crate) async fn whoever_frees_a_key_calls_the_first_in_line(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let token = caller.take("released", 1, 11).await;
    caller.enqueue("released", 2, 21).await;
    let (_, woken) = caller.release("released", token).await;
    holds!(woken == Some(id(21)), "by a release: {woken:?}");

    caller.take("revoked", 1, 12).await;
    caller.enqueue("revoked", 2, 22).await;
    let revoked = caller.revoke("revoked", None, 1).await;
    holds!(revoked.wake == Some(id(22)), "by a revoke: {revoked:?}");

    caller.take("given up", 1, 13).await;
    caller.enqueue("given up", 2, 23).await;
    let woken = caller.abandon("given up", 1, 13).await;
    holds!(woken == Some(id(23)), "by an abandon: {woken:?}");

    let token = caller.take("expired", 1, 14).await;
    caller.enqueue("expired", 2, 24).await;
    caller
        .run("UPDATE dlock.locks SET expires_at = clock_timestamp() WHERE lock_key = 'expired'")
        .await;
    let found = caller.insert("expired", 1, 15).await;
    holds!(found.outcome == "held", "{found:?} after {token}");
    holds!(
        found.wake_attempt == Some(id(24)),
        "by who finds it free: {found:?}"
    );
    Ok(())
}

/// P36: 22 characters, whatever the ids.
pub(crate) async fn a_channel_is_that_of_the_store_object_that_waits(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.release("key", token).await;
    let found = caller.insert("key", 1, 12).await;
    let channel = found.wake_channel.unwrap_or_default();
    let expected: String = caller
        .value(&format!("SELECT 'dlock_' || left(md5('{INSTANCE}'), 16)"))
        .await;
    holds!(channel == expected && channel.len() == 22, "{channel}");
    Ok(())
}

/// K-7: its attempt is over, so that whoever forgot it cannot come back to it.
pub(crate) async fn one_that_was_called_and_does_not_come_loses_its_place_for_good(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.run("UPDATE dlock.meta SET claim = '50 ms'").await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    caller.release("key", token).await;
    caller.run("SELECT pg_sleep(0.08)").await;
    let second = caller.enqueue("key", 3, 31).await;
    holds!(second.outcome == "granted", "{second:?}");
    let first = caller.enqueue("key", 2, 21).await;
    holds!(first.outcome == "ended", "{first:?}");
    let anew = caller.enqueue("key", 2, 22).await;
    holds!(anew.outcome == "queued", "{anew:?}");
    Ok(())
}

/// K-7: the claim counts from the call.
pub(crate) async fn one_that_has_time_to_come_keeps_its_place(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    caller
        .run("UPDATE dlock.waiters SET queued_at = queued_at - interval '1 h'")
        .await;
    caller.release("key", token).await;
    let second = caller.enqueue("key", 3, 31).await;
    holds!(
        second.outcome == "queued" && second.wake_attempt == Some(id(21)),
        "{second:?}"
    );
    let claim: bool = caller
        .value("SELECT claim = interval '12 seconds' FROM dlock.meta")
        .await;
    holds!(claim, "another claim time");
    Ok(())
}

/// P16: or it could keep the key free for as long as the clock stepped.
pub(crate) async fn a_call_of_a_clock_that_stepped_back_counts_from_now(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.run("UPDATE dlock.meta SET claim = '50 ms'").await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    caller.release("key", token).await;
    caller
        .run("UPDATE dlock.waiters SET called_at = called_at + interval '1 h'")
        .await;
    let asked = caller.enqueue("key", 3, 31).await;
    holds!(asked.outcome == "queued", "{asked:?}");
    caller.run("SELECT pg_sleep(0.08)").await;
    let asked = caller.enqueue("key", 3, 31).await;
    holds!(asked.outcome == "granted", "{asked:?}");
    Ok(())
}

/// INV-02, INV-08.
pub(crate) async fn the_dead_are_passed_over(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3, 4] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    caller.enqueue("key", 4, 41).await;
    caller.close(2).await;
    caller
        .run("UPDATE dlock.sessions SET expires_at = clock_timestamp() WHERE session = 3")
        .await;
    let (_, woken) = caller.release("key", token).await;
    holds!(woken == Some(id(41)), "{woken:?}");
    let closed: bool = caller
        .value("SELECT closed_at IS NOT NULL FROM dlock.sessions WHERE session = 3")
        .await;
    holds!(closed, "the expired one was not made gone");
    Ok(())
}

/// INV-05: it only looks expired.
pub(crate) async fn a_first_in_line_that_is_just_renewed_is_not_passed_over(
    database: &Database,
) -> Verdict {
    let [mut caller, mut renewing] = database.callers().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    renewing.run("BEGIN").await;
    renewing.keep_alive(2, &[]).await;
    // As it looks to those who do not see the renewal yet.
    let (_, woken) = caller.release("key", token).await;
    holds!(woken == Some(id(21)), "{woken:?}");
    renewing.run("ROLLBACK").await;
    renewing
        .run("UPDATE dlock.sessions SET expires_at = clock_timestamp() WHERE session = 2")
        .await;
    renewing
        .run("BEGIN; SELECT FROM dlock.sessions WHERE session = 2 FOR NO KEY UPDATE")
        .await;
    let other = caller.enqueue("key", 3, 31).await;
    holds!(other.outcome == "queued", "{other:?}");
    renewing.run("COMMIT").await;
    let other = caller.enqueue("key", 3, 31).await;
    holds!(other.outcome == "granted", "{other:?}");
    Ok(())
}

/// ABANDON-1, INV-08.
pub(crate) async fn a_place_given_up_calls_the_next(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    let woken = caller.abandon("key", 2, 21).await;
    holds!(woken.is_none(), "woken for a lock that is held: {woken:?}");
    caller.release("key", token).await;
    caller.enqueue("key", 2, 22).await;
    let woken = caller.abandon("key", 3, 31).await;
    holds!(woken == Some(id(22)), "{woken:?}");
    Ok(())
}

/// INV-08: as after a restore.
pub(crate) async fn tickets_rise_also_when_their_counter_went_back(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    caller.take("key", 1, 11).await;
    caller.run("SELECT setval('dlock.ticket_seq', 100)").await;
    let first = caller.enqueue("key", 2, 21).await;
    caller.run("SELECT setval('dlock.ticket_seq', 1)").await;
    let second = caller.enqueue("key", 3, 31).await;
    holds!(second.place > first.place, "{second:?} after {first:?}");
    Ok(())
}

/// WAIT-1.
pub(crate) async fn a_look_tells_what_a_waiter_has_to_know(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let look = |session: i64, attempt: u128| {
        format!(
            "SELECT concat_ws(' ', session_stands, place IS NOT NULL, first, anybody,
                              token IS NOT NULL, attempt_holds, head_attempt)
               FROM dlock.look_1('{NAMESPACE}', 'key', {session}, '{}')",
            id(attempt)
        )
    };
    let seen: String = caller.value(&look(1, 11)).await;
    holds!(seen == "t f f f f f", "a key never seen: {seen}");
    let token = caller.take("key", 1, 11).await;
    let seen: String = caller.value(&look(1, 11)).await;
    holds!(seen == "t f f f t t", "the holder: {seen}");
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    let seen: String = caller.value(&look(2, 21)).await;
    holds!(
        seen == format!("t t t t t f {}", id(21)),
        "the first: {seen}"
    );
    let seen: String = caller.value(&look(3, 31)).await;
    holds!(
        seen == format!("t t f t t f {}", id(21)),
        "the second: {seen}"
    );
    caller.close(2).await;
    caller.release("key", token).await;
    let seen: String = caller.value(&look(3, 31)).await;
    holds!(
        seen == format!("t t t t f f {}", id(31)),
        "the first now: {seen}"
    );
    let seen: String = caller.value(&look(2, 21)).await;
    holds!(
        seen == format!("f f f t f f {}", id(31)),
        "the closed one: {seen}"
    );
    Ok(())
}
