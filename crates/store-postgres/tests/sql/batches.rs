//! Calls for many keys at once: what they do for one they do whatever becomes of the others, and what
//! they cannot do at once they leave alone.

use std::collections::BTreeMap;

use super::support::{Caller, Database, NAMESPACE, Verdict, cases, holds, id};

cases!(
    keys_that_are_free_or_new_are_granted_at_once,
    what_is_released_at_once_can_be_granted_at_once,
    of_two_wishes_for_one_key_one_is_granted,
    a_session_that_is_gone_is_left_alone_beside_living_ones,
    an_attempt_that_was_given_up_is_left_alone,
    a_key_with_somebody_in_line_is_left_alone,
    an_attempt_that_is_not_settled_is_left_alone,
    a_row_that_somebody_works_on_is_skipped,
    a_place_that_is_being_taken_is_not_passed,
    an_abandon_waits_for_the_batch_that_grants_its_attempt,
    a_close_before_the_commit_of_a_batch_ends_what_it_grants,
    tokens_of_a_batch_rise_after_the_sequence_was_set_back,
    tokens_of_a_batch_rise_above_those_of_forgotten_rows,
    a_new_timeline_is_left_to_single_calls,
    only_what_a_token_names_is_released,
    a_release_with_somebody_to_wake_is_left_alone,
    a_release_of_a_session_that_is_gone_releases_nothing,
    batches_that_make_the_same_rows_do_not_lock_each_other_out,
);

/// Places of keys.
fn places<T>(of: &BTreeMap<usize, T>) -> Vec<usize> {
    of.keys().copied().collect()
}

async fn granted(
    caller: &mut Caller,
    wishes: &[(&str, i64, u128)],
) -> Result<BTreeMap<usize, i64>, String> {
    let answer = caller.insert_many(wishes).await;
    answer
        .map(|(tokens, _)| tokens)
        .map_err(|error| error.to_string())
}

async fn ended(
    caller: &mut Caller,
    grants: &[(&str, i64)],
    settled: bool,
) -> Result<BTreeMap<usize, bool>, String> {
    let answer = caller.release_many(grants, settled).await;
    answer.map_err(|error| error.to_string())
}

/// Takes and gives back a lock, so that the key has a row.
async fn free(caller: &mut Caller, key: &str) -> i64 {
    let token = caller.take(key, 1, 0xfeed).await;
    caller.release(key, token).await;
    token
}

async fn lock(caller: &mut Caller, key: &str) {
    let sql = format!("SELECT FROM dlock.locks WHERE lock_key = '{key}' FOR UPDATE");
    caller.run(&sql).await;
}

/// INSERT-1, INV-04.
pub(crate) async fn keys_that_are_free_or_new_are_granted_at_once(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let before = free(&mut caller, "free").await;
    let held = caller.take("held", 2, 9).await;
    let wishes = [("free", 1, 11), ("held", 1, 12), ("new", 2, 13)];
    let tokens = granted(&mut caller, &wishes).await?;
    holds!(places(&tokens) == [0, 2], "{tokens:?}");
    holds!(tokens[&0] > before, "{tokens:?} after {before}");
    for (place, key) in [(0, "free"), (2, "new")] {
        holds!(caller.read(key).await == Some(tokens[&place]), "{key}");
    }
    holds!(caller.read("held").await == Some(held), "it was taken over");
    // Whoever asks by itself for what the batch has granted is told the same.
    let again = caller.insert("new", 2, 13).await;
    holds!(again.token == Some(tokens[&2]), "{again:?}");
    Ok(())
}

/// DELETE-1.
pub(crate) async fn what_is_released_at_once_can_be_granted_at_once(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let mut last = [0, 0];
    for round in 0..3 {
        let wishes = [("a", 1, 2 * round), ("b", 1, 2 * round + 1)];
        let tokens = granted(&mut caller, &wishes).await?;
        holds!(places(&tokens) == [0, 1], "{round}: {tokens:?}");
        let now = [tokens[&0], tokens[&1]];
        holds!(
            now[0] > last[0] && now[1] > last[1],
            "{now:?} after {last:?}"
        );
        last = now;
        let ended = ended(&mut caller, &[("a", now[0]), ("b", now[1])], true).await?;
        holds!(ended == BTreeMap::from([(0, true), (1, true)]), "{ended:?}");
    }
    Ok(())
}

/// INV-01.
pub(crate) async fn of_two_wishes_for_one_key_one_is_granted(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    free(&mut caller, "free").await;
    for key in ["free", "new"] {
        let tokens = granted(&mut caller, &[(key, 1, 11), (key, 1, 12)]).await?;
        holds!(tokens.len() == 1, "{key}: {tokens:?}");
        let (place, token) = tokens.first_key_value().unwrap();
        let attempt = if *place == 0 { 11 } else { 12 };
        let again = caller.insert(key, 1, attempt).await;
        holds!(again.token == Some(*token), "{key}: {again:?}");
        let other = caller.insert(key, 1, 23 - attempt).await;
        holds!(other.outcome == "held", "{key}: {other:?}");
    }
    Ok(())
}

/// INSERT-8.
pub(crate) async fn a_session_that_is_gone_is_left_alone_beside_living_ones(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    for key in ["a", "b", "c"] {
        free(&mut caller, key).await;
    }
    caller.close(2).await;
    caller.open_for(3, 1_000).await;
    caller
        .run("UPDATE dlock.sessions SET expires_at = clock_timestamp() WHERE session = 3")
        .await;
    let wishes = [
        ("a", 2, 11),
        ("b", 1, 12),
        ("c", 3, 13),
        ("new", 2, 14),
        ("d", 9, 15),
    ];
    let tokens = granted(&mut caller, &wishes).await?;
    holds!(places(&tokens) == [1], "{tokens:?}");
    for key in ["a", "c", "new", "d"] {
        holds!(caller.read(key).await.is_none(), "{key} is held");
    }
    let alone = caller.insert("a", 2, 11).await;
    holds!(alone.outcome == "session_gone", "{alone:?}");
    Ok(())
}

/// INSERT-5, ABANDON-1.
pub(crate) async fn an_attempt_that_was_given_up_is_left_alone(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller.abandon("key", 1, 11).await;
    let tokens = granted(&mut caller, &[("key", 1, 11), ("other", 1, 12)]).await?;
    holds!(places(&tokens) == [1], "{tokens:?}");
    let alone = caller.insert("key", 1, 11).await;
    holds!(alone.outcome == "ended", "{alone:?}");
    Ok(())
}

/// INSERT-4.
pub(crate) async fn a_key_with_somebody_in_line_is_left_alone(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 12).await;
    caller.release("key", token).await;
    let tokens = granted(&mut caller, &[("key", 1, 13), ("other", 1, 14)]).await?;
    holds!(places(&tokens) == [1], "{tokens:?}");
    let next = caller.enqueue("key", 2, 12).await;
    holds!(next.outcome == "granted", "{next:?}");
    Ok(())
}

/// INV-07, F-7: the row remembers an attempt that may still be on its way.
pub(crate) async fn an_attempt_that_is_not_settled_is_left_alone(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let token = caller.take("key", 1, 11).await;
    let ended = ended(&mut caller, &[("key", token)], false).await?;
    holds!(ended == BTreeMap::from([(0, true)]), "{ended:?}");
    let tokens = granted(&mut caller, &[("key", 1, 12)]).await?;
    holds!(tokens.is_empty(), "{tokens:?}");
    let late = caller.insert("key", 1, 11).await;
    holds!(late.outcome == "ended", "{late:?}");
    caller.take("key", 1, 12).await;
    let late = caller.insert("key", 1, 11).await;
    holds!(late.outcome == "ended", "{late:?}");
    Ok(())
}

/// Nobody is held up by the key of another: neither grants nor releases wait for a row.
pub(crate) async fn a_row_that_somebody_works_on_is_skipped(database: &Database) -> Verdict {
    let [mut holder, mut caller] = database.callers().await;
    holder.open(1).await;
    for key in ["busy", "free"] {
        free(&mut holder, key).await;
    }
    let held = holder.take("held", 1, 9).await;
    let busy_too = holder.take("busy too", 1, 10).await;
    holder.run("BEGIN").await;
    for key in ["busy", "busy too"] {
        lock(&mut holder, key).await;
    }
    let tokens = granted(&mut caller, &[("busy", 1, 11), ("free", 1, 12)]).await;
    let ended = ended(&mut caller, &[("busy too", busy_too), ("held", held)], true).await;
    holder.run("COMMIT").await;
    let (tokens, ended) = (tokens?, ended?);
    holds!(places(&tokens) == [1], "{tokens:?}");
    holds!(ended == BTreeMap::from([(1, true)]), "{ended:?}");
    holds!(
        caller.read("busy too").await == Some(busy_too),
        "it was ended"
    );
    Ok(())
}

/// F-1, INSERT-4: the place is taken, and not committed, when the batch comes.
pub(crate) async fn a_place_that_is_being_taken_is_not_passed(database: &Database) -> Verdict {
    let [mut first, mut caller] = database.callers().await;
    for session in [1, 2, 3] {
        first.open(session).await;
    }
    free(&mut first, "key").await;
    first.run("BEGIN").await;
    let token = first.take("key", 1, 11).await;
    first.enqueue("key", 2, 12).await;
    first.release("key", token).await;
    let tokens = granted(&mut caller, &[("key", 3, 13), ("other", 3, 14)]).await?;
    holds!(places(&tokens) == [1], "{tokens:?}");
    first.run("COMMIT").await;
    let tokens = granted(&mut caller, &[("key", 3, 15)]).await?;
    holds!(tokens.is_empty(), "{tokens:?}");
    Ok(())
}

/// ABANDON-1: what returned before the batch had the row is seen by it, and what comes later waits.
pub(crate) async fn an_abandon_waits_for_the_batch_that_grants_its_attempt(
    database: &Database,
) -> Verdict {
    let [mut batch, mut abandoning, mut watch] = database.callers().await;
    batch.open(1).await;
    free(&mut batch, "key").await;
    for (key, attempt) in [("key", 7), ("new", 8)] {
        batch.run("BEGIN").await;
        let tokens = granted(&mut batch, &[(key, 1, attempt)]).await?;
        holds!(places(&tokens) == [0], "{key}: {tokens:?}");
        let waiter = abandoning.pid();
        tokio::join!(biased; abandoning.abandon(key, 1, attempt), async {
            watch.until_waits(waiter).await;
            batch.run("COMMIT").await;
        });
        holds!(watch.read(key).await.is_none(), "{key}: the attempt holds");
    }
    Ok(())
}

/// INV-02, F-14.
pub(crate) async fn a_close_before_the_commit_of_a_batch_ends_what_it_grants(
    database: &Database,
) -> Verdict {
    let [mut batch, mut closing] = database.callers().await;
    for session in [1, 2] {
        batch.open(session).await;
    }
    batch.run("BEGIN").await;
    let tokens = granted(&mut batch, &[("a", 1, 11), ("b", 2, 12)]).await?;
    holds!(places(&tokens) == [0, 1], "{tokens:?}");
    closing.close(1).await;
    batch.run("COMMIT").await;
    holds!(closing.read("a").await.is_none(), "the grant lives");
    holds!(
        closing.read("b").await == Some(tokens[&1]),
        "the other does not"
    );
    Ok(())
}

/// INV-04, P6: a sequence that went back is overruled for every key, and told.
pub(crate) async fn tokens_of_a_batch_rise_after_the_sequence_was_set_back(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let before = [free(&mut caller, "a").await, free(&mut caller, "b").await];
    let answer = caller.insert_many(&[("a", 1, 11), ("b", 1, 12)]).await;
    let (tokens, lifted) = answer.unwrap();
    holds!(!lifted, "{tokens:?} were lifted");
    let grants = [("a", tokens[&0]), ("b", tokens[&1])];
    ended(&mut caller, &grants, true).await?;
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 1)")
        .await;
    let answer = caller.insert_many(&[("a", 1, 13), ("b", 1, 14)]).await;
    let (later, lifted) = answer.unwrap();
    holds!(lifted, "{later:?} were not lifted");
    for place in [0, 1] {
        holds!(
            later[&place] > tokens[&place] && tokens[&place] > before[place],
            "{later:?} after {tokens:?} after {before:?}"
        );
    }
    Ok(())
}

/// INV-04.
pub(crate) async fn tokens_of_a_batch_rise_above_those_of_forgotten_rows(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let before = free(&mut caller, "key").await;
    caller
        .run(
            "UPDATE dlock.meta SET idle = '0';
             UPDATE dlock.locks SET expires_at = 'epoch' WHERE NOT held",
        )
        .await;
    caller.reap(100, None).await;
    let rows: i64 = caller.value("SELECT count(*) FROM dlock.locks").await;
    holds!(rows == 0, "{rows} rows");
    caller
        .run("SELECT setval('dlock.fencing_token_seq', 1)")
        .await;
    let tokens = granted(&mut caller, &[("key", 1, 12)]).await?;
    holds!(tokens[&0] > before, "{tokens:?} after {before}");
    Ok(())
}

/// P9.
pub(crate) async fn a_new_timeline_is_left_to_single_calls(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let before = free(&mut caller, "key").await;
    caller.run("UPDATE dlock.meta SET timeline_seen = 0").await;
    let tokens = granted(&mut caller, &[("key", 1, 11)]).await?;
    holds!(tokens.is_empty(), "{tokens:?}");
    let token = caller.take("key", 1, 11).await;
    holds!(token >> 44 > before >> 44, "{token} after {before}");
    let tokens = granted(&mut caller, &[("other", 1, 12)]).await?;
    holds!(tokens[&0] >> 44 == token >> 44, "{tokens:?} after {token}");
    Ok(())
}

/// DELETE-1, INV-06.
pub(crate) async fn only_what_a_token_names_is_released(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let before = free(&mut caller, "a").await;
    let (a, b) = (caller.take("a", 1, 11).await, caller.take("b", 1, 12).await);
    let wishes = [("a", before), ("b", b), ("a", b), ("never seen", a)];
    let ended = ended(&mut caller, &wishes, true).await?;
    holds!(ended == BTreeMap::from([(1, true)]), "{ended:?}");
    holds!(caller.read("a").await == Some(a), "another was released");
    Ok(())
}

/// INV-08.
pub(crate) async fn a_release_with_somebody_to_wake_is_left_alone(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let (a, b) = (caller.take("a", 1, 11).await, caller.take("b", 1, 12).await);
    caller.enqueue("a", 2, 13).await;
    let ended = ended(&mut caller, &[("a", a), ("b", b)], true).await?;
    holds!(ended == BTreeMap::from([(1, true)]), "{ended:?}");
    let (released, wake) = caller.release("a", a).await;
    holds!(released && wake == Some(id(13)), "{released} {wake:?}");
    Ok(())
}

/// DELETE-2.
pub(crate) async fn a_release_of_a_session_that_is_gone_releases_nothing(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let (a, b) = (caller.take("a", 1, 11).await, caller.take("b", 2, 12).await);
    caller.close(1).await;
    let ended = ended(&mut caller, &[("a", a), ("b", b)], true).await?;
    holds!(
        ended == BTreeMap::from([(0, false), (1, true)]),
        "{ended:?}"
    );
    Ok(())
}

/// P1: each makes rows that the other wants too, in the opposite order.
pub(crate) async fn batches_that_make_the_same_rows_do_not_lock_each_other_out(
    database: &Database,
) -> Verdict {
    let [mut one, mut other] = database.callers().await;
    one.open(1).await;
    for round in 0..50_u128 {
        let keys: Vec<_> = (0..8)
            .map(|number| format!("key {round} {number}"))
            .collect();
        let wishes = |first: u128| {
            let keys = keys.iter().zip(first..);
            keys.map(|(key, attempt)| (key.as_str(), 1, attempt))
                .collect::<Vec<_>>()
        };
        let forth = wishes(round * 16);
        let mut back = wishes(round * 16 + 8);
        back.reverse();
        let (forth, back) = tokio::join!(
            biased;
            one.insert_many(&forth),
            other.insert_many(&back)
        );
        for answer in [&forth, &back] {
            holds!(answer.is_ok(), "{NAMESPACE}, round {round}: {answer:?}");
        }
        let granted = forth.unwrap().0.len() + back.unwrap().0.len();
        holds!(granted <= keys.len(), "round {round}: {granted} grants");
    }
    Ok(())
}
