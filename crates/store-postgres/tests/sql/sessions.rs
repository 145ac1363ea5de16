//! Opening and closing sessions, and what ends with them.

use super::support::{Database, INSTANCE, Verdict, cases, code, holds, id};

cases!(
    a_session_opened_again_by_its_store_object_is_renewed,
    a_session_of_another_store_object_is_foreign,
    a_closed_session_is_never_opened_again,
    a_session_closed_before_it_was_opened_stays_closed,
    an_open_that_is_under_way_is_closed_by_the_close_that_waits_for_it,
    closing_ends_all_grants_by_one_row,
    closing_wakes_the_first_in_line_of_what_it_held,
    closing_wakes_who_comes_after_its_place,
    a_session_that_took_a_lock_leaves_nothing_to_its_namesake,
    values_beyond_the_limits_are_refused,
);

/// OPEN-1.
pub(crate) async fn a_session_opened_again_by_its_store_object_is_renewed(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open_for(1, 10_000).await;
    caller
        .run("UPDATE dlock.sessions SET expires_at = expires_at - interval '5 s'")
        .await;
    let (outcome, left) = caller.open_for(1, 10_000).await;
    holds!(
        outcome == "open" && left > Some(9_000),
        "{outcome} {left:?}"
    );
    Ok(())
}

/// OPEN-4.
pub(crate) async fn a_session_of_another_store_object_is_foreign(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let (outcome, _) = caller.open_of(1, id(0x2000), 10_000).await.unwrap();
    holds!(outcome == "foreign", "{outcome}");
    Ok(())
}

/// OPEN-3, INV-07, K-5.
pub(crate) async fn a_closed_session_is_never_opened_again(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller.close(1).await;
    let outcome = caller.open(1).await;
    holds!(outcome == "gone", "{outcome}");
    let insert = caller.insert("key", 1, 11).await;
    holds!(insert.outcome == "session_gone", "{insert:?}");
    Ok(())
}

/// CLOSE-2, K-5: the open comes late.
pub(crate) async fn a_session_closed_before_it_was_opened_stays_closed(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.close(1).await;
    caller.close(1).await;
    let outcome = caller.open(1).await;
    holds!(outcome == "gone", "{outcome}");
    Ok(())
}

/// CLOSE-1.
pub(crate) async fn an_open_that_is_under_way_is_closed_by_the_close_that_waits_for_it(
    database: &Database,
) -> Verdict {
    let [mut opening, mut closing, mut watch] = database.callers().await;
    opening.run("BEGIN").await;
    opening.open(1).await;
    let waiter = closing.pid();
    tokio::join!(biased; closing.close(1), async {
        watch.until_waits(waiter).await;
        opening.run("COMMIT").await;
    });
    let insert = opening.insert("key", 1, 11).await;
    holds!(insert.outcome == "session_gone", "{insert:?}");
    Ok(())
}

/// INV-02, CLOSE-1: by reference.
pub(crate) async fn closing_ends_all_grants_by_one_row(database: &Database) -> Verdict {
    let [mut caller, mut other] = database.callers().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let mut tokens = Vec::new();
    for number in 0..5_u8 {
        let key = format!("key {number}");
        tokens.push((caller.take(&key, 1, u128::from(number)).await, key));
    }
    // Those of earlier transactions may still be among them.
    let written = "SELECT sum(n_tup_upd + n_tup_ins + n_tup_del)::bigint
                     FROM pg_stat_xact_user_tables";
    caller.run("BEGIN").await;
    let before: i64 = caller.value(written).await;
    caller.close(1).await;
    let written: i64 = caller.value::<i64>(written).await - before;
    caller.run("COMMIT").await;
    holds!(written == 1, "{written} rows written");
    for (token, key) in &tokens {
        holds!(caller.read(key).await.is_none(), "{key} is held");
        holds!(
            caller.extend(key, *token).await.is_none(),
            "{key} is extended"
        );
        let (released, _) = caller.release(key, *token).await;
        holds!(!released, "{key} is released");
    }
    let next = other.insert("key 0", 2, 100).await;
    holds!(
        next.outcome == "granted" && next.token > Some(tokens[0].0),
        "{next:?}"
    );
    Ok(())
}

/// INV-08.
pub(crate) async fn closing_wakes_the_first_in_line_of_what_it_held(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    caller.take("one", 1, 11).await;
    caller.take("two", 1, 12).await;
    caller.take("of another", 3, 13).await;
    caller.enqueue("one", 2, 21).await;
    caller.enqueue("one", 3, 31).await;
    caller.enqueue("two", 3, 32).await;
    caller.enqueue("of another", 2, 22).await;
    let mut woken = caller.close(1).await;
    woken.sort_unstable();
    holds!(woken == [id(21), id(32)], "{woken:?}");
    Ok(())
}

/// INV-08: the one that was called is no more.
pub(crate) async fn closing_wakes_who_comes_after_its_place(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2, 3] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.enqueue("key", 3, 31).await;
    let (_, woken) = caller.release("key", token).await;
    holds!(woken == Some(id(21)), "{woken:?}");
    let woken = caller.close(2).await;
    holds!(woken == [id(31)], "{woken:?}");
    Ok(())
}

/// The incarnation: the tombstone is gone, and the id is used again against all rules.
pub(crate) async fn a_session_that_took_a_lock_leaves_nothing_to_its_namesake(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    let place = caller.take("queued for", 2, 21).await;
    caller.enqueue("queued for", 1, 12).await;
    caller.close(1).await;
    caller
        .run("DELETE FROM dlock.sessions WHERE session = 1")
        .await;
    let outcome = caller.open(1).await;
    holds!(outcome == "open", "{outcome}");
    holds!(caller.read("key").await.is_none(), "the grant is revived");
    holds!(
        caller.extend("key", token).await.is_none(),
        "it is extended"
    );
    caller.release("queued for", place).await;
    let next = caller.insert("queued for", 2, 22).await;
    holds!(next.outcome == "granted", "the place is revived: {next:?}");
    Ok(())
}

/// B131, P24.
pub(crate) async fn values_beyond_the_limits_are_refused(database: &Database) -> Verdict {
    const CHECKED: &str = "23514";
    let mut caller = database.connect().await;
    for ttl_ms in [999, 86_400_001] {
        let refused = code(caller.open_of(1, INSTANCE, ttl_ms).await);
        holds!(refused == CHECKED, "{ttl_ms}: {refused}");
    }
    caller.open(1).await;
    for key in [String::new(), "k".repeat(513)] {
        let refused = code(caller.try_insert(&key, 1, 11, false).await);
        holds!(refused == CHECKED, "{key}: {refused}");
    }
    let longest = "ä".repeat(256);
    let insert = caller.insert(&longest, 1, 12).await;
    holds!(insert.outcome == "granted", "{insert:?}");
    for (what, owner, payload) in [("owner", 257, 0), ("payload", 1, 4_097)] {
        let sql = format!(
            "SELECT dlock.open_session_1('tests', 9, '{INSTANCE}', repeat('o', {owner}), 1000, 99);
             SELECT dlock.try_insert_1('tests', '{what}', 9, '{INSTANCE}',
                                       convert_to(repeat('p', {payload}), 'UTF8'), false, 99)"
        );
        let refused = code(caller.try_run(&sql).await);
        holds!(refused == CHECKED, "{what}: {refused}");
    }
    Ok(())
}
