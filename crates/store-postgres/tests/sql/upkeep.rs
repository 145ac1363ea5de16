//! The reaper, and the pages of what there is.

use super::support::{Caller, Database, Verdict, cases, holds};

cases!(
    a_reaper_spares_a_grant_of_a_session_that_it_does_not_see_yet,
    a_reaper_clears_what_is_dead_and_no_more_than_it_may,
    a_reaper_forgets_what_is_old,
    a_reaper_touches_nothing_that_lives,
    a_reaper_leaves_alone_what_others_work_on,
    pages_show_every_living_lock_once,
    prefixes_are_compared_byte_by_byte,
    a_diagnosis_tells_what_is_wrong_and_nothing_else,
);

/// Where the reaper has taken its snapshot and waits.
pub(crate) const GATE: (&str, &str) = (
    "       AND CASE WHEN x.held\n",
    "       AND (SELECT pg_advisory_xact_lock_shared(42)) IS NOT NULL
       AND CASE WHEN x.held\n",
);

/// F-2, REAP-1: the reaper passes a gate once the lock has been taken over.
pub(crate) async fn a_reaper_spares_a_grant_of_a_session_that_it_does_not_see_yet(
    _: &Database,
) -> Verdict {
    spares_what_it_does_not_see(&Database::with(&[GATE])).await
}

/// The same, for a schema with a gate.
pub(crate) async fn spares_what_it_does_not_see(database: &Database) -> Verdict {
    let [mut reaper, mut caller, mut gate] = database.callers().await;
    caller.open(1).await;
    caller.take("key", 1, 11).await;
    caller.close(1).await;
    gate.run("BEGIN; SELECT pg_advisory_xact_lock(42)").await;
    let waiter = reaper.pid();
    let ((), token) = tokio::join!(biased; async { drop(reaper.reap(100, None).await) }, async {
        gate.until_waits(waiter).await;
        caller.open(2).await;
        let token = caller.take("key", 2, 21).await;
        gate.run("COMMIT").await;
        token
    });
    let read = caller.read("key").await;
    holds!(read == Some(token), "the reaper ended it: {read:?}");
    let kept = caller.keep_alive(2, &[("key", token)]).await;
    holds!(kept.len() == 1, "{kept:?}");
    Ok(())
}

/// REAP-1.
pub(crate) async fn a_reaper_clears_what_is_dead_and_no_more_than_it_may(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(99).await;
    for session in 1..=3 {
        caller.open(session).await;
        caller.take(&format!("key {session}"), session, 11).await;
        caller.take(&format!("queue {session}"), 99, 99).await;
        caller
            .enqueue(&format!("queue {session}"), session, 12)
            .await;
    }
    caller
        .run("UPDATE dlock.sessions SET expires_at = clock_timestamp() WHERE session <> 99")
        .await;
    let mut total = 0;
    let mut after: Option<String> = None;
    for _ in 0..40 {
        let (cleared, next) = caller.reap(2, after.as_deref()).await;
        holds!(cleared <= 2, "{cleared} of at most 2");
        total += cleared;
        if next.is_none() && cleared == 0 {
            break;
        }
        after = next;
    }
    holds!(total == 9, "{total} cleared");
    let left: i64 = caller
        .value("SELECT count(*) FROM dlock.locks WHERE held")
        .await;
    holds!(left == 3, "{left} are held");
    let (again, _) = caller.reap(100, None).await;
    holds!(again == 0, "{again} cleared again");
    Ok(())
}

/// Tombstones, attempts and rows.
pub(crate) async fn a_reaper_forgets_what_is_old(database: &Database) -> Verdict {
    let counts = "SELECT (SELECT count(*) FROM dlock.sessions)
                       + (SELECT count(*) FROM dlock.spent)
                       + (SELECT count(*) FROM dlock.locks)";
    let mut caller = database.connect().await;
    caller.close(1).await;
    caller.abandon("key", 1, 11).await;
    caller
        .run("UPDATE dlock.locks SET expires_at = clock_timestamp()")
        .await;
    caller.reap(100, None).await;
    let kept: i64 = caller.value(counts).await;
    holds!(kept == 3, "{kept} are kept while they are young");
    caller
        .run(
            "UPDATE dlock.sessions SET closed_at = closed_at - interval '61 minutes';
             UPDATE dlock.spent SET at = at - interval '16 minutes';
             UPDATE dlock.locks SET expires_at = expires_at - interval '8 days'",
        )
        .await;
    caller.reap(100, None).await;
    let kept: i64 = caller.value(counts).await;
    holds!(kept == 0, "{kept} are kept for ever");
    Ok(())
}

/// REAP-1: not even for a moment.
pub(crate) async fn a_reaper_touches_nothing_that_lives(database: &Database) -> Verdict {
    let [mut caller, mut reaper] = database.callers().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller.revoke("floored", None, 1).await;
    caller.run("UPDATE dlock.meta SET idle = '0'").await;
    reaper.run("BEGIN").await;
    let (cleared, _) = reaper.reap(100, None).await;
    holds!(cleared == 0, "{cleared} cleared");
    // Its transaction is open: what it had locked would be late.
    let kept = caller.keep_alive(1, &[("key", token)]).await;
    holds!(kept.len() == 1, "{kept:?}");
    reaper.run("COMMIT").await;
    let floors: i64 = caller
        .value("SELECT count(*) FROM dlock.locks WHERE floor IS NOT NULL")
        .await;
    holds!(floors == 1, "the floor is forgotten");
    Ok(())
}

/// P22: it never waits.
pub(crate) async fn a_reaper_leaves_alone_what_others_work_on(database: &Database) -> Verdict {
    let [mut caller, mut reaper] = database.callers().await;
    caller.open(1).await;
    caller.open(2).await;
    caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    caller
        .run("UPDATE dlock.sessions SET expires_at = clock_timestamp()")
        .await;
    caller
        .run(
            "BEGIN; SELECT FROM dlock.sessions FOR UPDATE; SELECT FROM dlock.locks FOR UPDATE;
             SELECT FROM dlock.waiters FOR UPDATE",
        )
        .await;
    reaper.lock_ms = 100;
    let (cleared, _) = reaper.reap(100, None).await;
    holds!(cleared == 0, "{cleared} cleared");
    caller.run("COMMIT").await;
    let (cleared, _) = reaper.reap(100, None).await;
    holds!(cleared == 4, "{cleared} cleared");
    Ok(())
}

/// LIST-2, Q6.
pub(crate) async fn pages_show_every_living_lock_once(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let mut expected = Vec::new();
    for number in 0..10 {
        let key = format!("key {number}");
        let session = 1 + i64::from(number % 3 == 0);
        caller.take(&key, session, 11).await;
        if session == 1 {
            expected.push(key);
        }
    }
    caller.close(2).await;
    for limit in [1, 3, 100] {
        let listed = listed(&mut caller, "", limit).await;
        holds!(listed == expected, "{limit}: {listed:?}");
    }
    Ok(())
}

/// LIST-1, Q6, P24.
pub(crate) async fn prefixes_are_compared_byte_by_byte(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let longest = format!("a{}", "\u{10ffff}".repeat(127));
    let keys = [
        "A",
        "a",
        "a%",
        "a%b",
        "a/",
        "a/b",
        "a_",
        "aé",
        "a\u{65}\u{301}",
        "a\u{d7ff}",
        "a\u{e000}",
        "a\u{10ffff}",
        "a\u{10ffff}b",
        longest.as_str(),
        "b",
        "é",
        "ß",
        "日本",
    ];
    for (number, key) in (1..).zip(keys) {
        caller.take(key, 1, number).await;
    }
    let twice = "\u{10ffff}".repeat(2);
    for prefix in [
        "",
        "a",
        "a%",
        "a/",
        "aé",
        "ae",
        "a\u{d7ff}",
        "a\u{10ffff}",
        &twice,
        "ß",
        "b",
    ] {
        let mut expected: Vec<_> = keys
            .into_iter()
            .filter(|key| key.starts_with(prefix))
            .collect();
        expected.sort_unstable();
        let listed = listed(&mut caller, prefix, 4).await;
        holds!(listed == expected, "{prefix}: {listed:?}");
    }
    Ok(())
}

/// ALL-4: on a server that waits for no disk.
pub(crate) async fn a_diagnosis_tells_what_is_wrong_and_nothing_else(
    database: &Database,
) -> Verdict {
    const FINDINGS: &str = "SELECT id || ' ' || severity FROM dlock.diagnose_1() ORDER BY id";
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller.take("key", 1, 11).await;
    let well = caller.lines(FINDINGS).await;
    holds!(
        well.iter().all(|id| id == "unsafe_setting warning"),
        "{well:?}"
    );
    caller.recover(1, None, 60_000).await.unwrap();
    caller
        .run(
            "CREATE INDEX further ON dlock.locks (expires_at);
             ALTER TABLE dlock.spent SET UNLOGGED;
             ALTER SEQUENCE dlock.fencing_token_seq CACHE 20;
             SELECT setval('dlock.fencing_token_seq', 17000000000000);
             UPDATE dlock.meta SET use_timeline = false, term = 510000;
             UPDATE dlock.locks SET floor = 9223372036854775807;
             UPDATE dlock.sessions SET closed_at = closed_at - interval '2 days'",
        )
        .await;
    let mut found = caller.lines(FINDINGS).await;
    found.dedup();
    let expected = [
        "counter_behind critical",
        "counter_near_end warning",
        "further_index warning",
        "namespace_closed warning",
        "not_reaped warning",
        "sequence_altered critical",
        "term_near_end warning",
        "timeline_unreadable warning",
        "unlogged critical",
        "unsafe_setting warning",
    ];
    holds!(found == expected, "{found:?}");
    Ok(())
}

/// The held keys of all pages.
async fn listed(caller: &mut Caller, prefix: &str, limit: i32) -> Vec<String> {
    let mut held = Vec::new();
    let mut after = "NULL".to_owned();
    loop {
        let call = format!("dlock.list_1('tests', '{prefix}', {after}, {limit})");
        let page: Vec<String> = caller
            .value(&format!(
                "SELECT coalesce(array_agg(lock_key) FILTER (WHERE held), '{{}}') FROM {call}"
            ))
            .await;
        held.extend(page);
        let next: Option<String> = caller
            .value(&format!(
                "SELECT max(lock_key) FILTER (WHERE more) FROM {call}"
            ))
            .await;
        match next {
            Some(next) => after = format!("'{next}'"),
            None => return held,
        }
    }
}
