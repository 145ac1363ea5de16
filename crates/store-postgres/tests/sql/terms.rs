//! The term: it rises when the counter may have gone back.

use test_servers::{Mode, Postgres};

use super::support::{Database, Verdict, cases, code, holds};

cases!(
    data_that_moved_to_another_cluster_raises_the_term,
    data_that_moved_to_another_database_raises_the_term,
    a_new_timeline_raises_the_term_and_the_counter,
    a_timeline_that_fell_raises_the_term,
    a_recovery_raises_the_term_above_everything_known,
    a_recovery_ends_the_namespace_and_no_other,
    a_recovery_asked_twice_is_done_once,
    a_session_cannot_slip_past_a_recovery,
    a_timeline_that_cannot_be_read_leaves_the_base,
);

/// The least token of a term.
const fn least_of(term: i64) -> i64 {
    term << 44
}

/// The stamp of an hour ago, at least.
async fn stamp(caller: &mut super::support::Caller) -> i64 {
    let hour = 4_096 * 3_600;
    let seconds: i64 = caller
        .value("SELECT floor(extract(epoch FROM clock_timestamp() - '2025-01-01Z'))::bigint")
        .await;
    4_096 * seconds - hour
}

/// F-6: a dump and restore, an upgrade.
pub(crate) async fn data_that_moved_to_another_cluster_raises_the_term(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let before = caller.take("key", 1, 11).await;
    caller
        .run("UPDATE dlock.meta SET sysid = sysid + 1, timeline_seen = 3, term = 2")
        .await;
    caller.attach().await;
    let after = caller.take("other", 1, 12).await;
    holds!(after > least_of(3), "{after} after {before}");
    let counter: i64 = caller
        .value("SELECT last_value FROM dlock.fencing_token_seq")
        .await;
    holds!(counter > stamp(&mut caller).await, "{counter} is no stamp");
    caller.attach().await;
    let again = caller.take("third", 1, 13).await;
    holds!(
        again >> 44 == after >> 44,
        "{again} after {after}: raised twice"
    );
    Ok(())
}

/// F-6: a dump that is restored beside, or in the place of, what it was made of.
pub(crate) async fn data_that_moved_to_another_database_raises_the_term(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.attach().await;
    caller.open(1).await;
    let before = caller.take("key", 1, 11).await;
    caller.run("UPDATE dlock.meta SET database = 1").await;
    caller.attach().await;
    let after = caller.take("other", 1, 12).await;
    holds!(after >> 44 == (before >> 44) + 1, "{after} after {before}");
    Ok(())
}

/// P10, F-5: as after a promotion.
pub(crate) async fn a_new_timeline_raises_the_term_and_the_counter(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let before = caller.take("key", 1, 11).await;
    caller.release("key", before).await;
    // The timeline before this one.
    caller.run("UPDATE dlock.meta SET timeline_seen = 0").await;
    let after = caller.take("key", 1, 12).await;
    holds!(after >> 44 == (before >> 44) + 1, "{after} after {before}");
    let counter: i64 = caller
        .value("SELECT last_value FROM dlock.fencing_token_seq")
        .await;
    holds!(counter > stamp(&mut caller).await, "{counter} is no stamp");
    Ok(())
}

/// F-4: an upgrade begins the timelines anew.
pub(crate) async fn a_timeline_that_fell_raises_the_term(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    caller
        .run("UPDATE dlock.meta SET timeline_seen = 7, term = 6")
        .await;
    let after = caller.take("key", 1, 11).await;
    holds!(after > least_of(7), "{after}");
    Ok(())
}

/// RECOVER-1, B149.
pub(crate) async fn a_recovery_raises_the_term_above_everything_known(
    database: &Database,
) -> Verdict {
    let mut caller = database.connect().await;
    caller.open(1).await;
    let before = caller.take("key", 1, 11).await;
    let (term, closed_ms) = caller.recover(1, None, 0).await.unwrap();
    holds!(
        term == (before >> 44) + 1 && closed_ms == 0,
        "{term} {closed_ms}"
    );
    caller.open(2).await;
    let after = caller.take("key", 2, 21).await;
    holds!(after > least_of(term), "{after}");
    let above = least_of(40) + 5;
    let (term, _) = caller.recover(2, Some(above), 0).await.unwrap();
    caller.open(3).await;
    let after = caller.take("key", 3, 31).await;
    holds!(term == 41 && after > above, "{term} {after}");
    let refused = code(caller.recover(3, Some(i64::MAX), 0).await);
    holds!(refused == "2200H", "{refused}");
    let (term, _) = caller.recover(4, None, 0).await.unwrap();
    holds!(term == 42, "{term}");
    Ok(())
}

/// RECOVER-2.
pub(crate) async fn a_recovery_ends_the_namespace_and_no_other(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    for session in [1, 2] {
        caller.open(session).await;
    }
    let token = caller.take("key", 1, 11).await;
    caller.enqueue("key", 2, 21).await;
    let other = "SELECT token FROM dlock.try_insert_1(
                   'other', 'key', 1, gen_random_uuid(), 'x', false, 99)";
    caller
        .run("SELECT dlock.open_session_1('other', 1, gen_random_uuid(), 'o', 60000, 99)")
        .await;
    let theirs: Option<i64> = caller.value(other).await;
    let (_, closed_ms) = caller.recover(1, None, 200).await.unwrap();
    holds!(closed_ms > 100 && closed_ms <= 200, "{closed_ms}");
    holds!(
        caller.extend("key", token).await.is_none(),
        "the grant stands"
    );
    holds!(
        caller.keep_alive(2, &[]).await.is_empty(),
        "the session stands"
    );
    let insert = caller.enqueue("key", 2, 21).await;
    holds!(insert.outcome == "session_gone", "{insert:?}");
    let outcome = caller.open(3).await;
    holds!(outcome == "closed", "{outcome}");
    let read: Option<i64> = caller
        .value("SELECT token FROM dlock.read_1('other', 'key')")
        .await;
    holds!(
        theirs.is_some() && read == theirs,
        "another namespace: {read:?}"
    );
    caller.run("SELECT pg_sleep(0.25)").await;
    let outcome = caller.open(3).await;
    holds!(outcome == "open", "{outcome}");
    let next = caller.insert("key", 3, 31).await;
    holds!(next.token > Some(token), "{next:?}");
    Ok(())
}

/// RECOVER-3.
pub(crate) async fn a_recovery_asked_twice_is_done_once(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    let (term, _) = caller.recover(1, None, 60).await.unwrap();
    caller.run("SELECT pg_sleep(0.08)").await;
    caller.open(1).await;
    let token = caller.take("key", 1, 11).await;
    let (again, closed_ms) = caller.recover(1, None, 60_000).await.unwrap();
    holds!(again == term && closed_ms == 0, "{again} {closed_ms}");
    holds!(
        caller.extend("key", token).await.is_some(),
        "it ended what came later"
    );
    Ok(())
}

/// RECOVER-2: its opening is not committed when the recovery comes.
pub(crate) async fn a_session_cannot_slip_past_a_recovery(database: &Database) -> Verdict {
    let [mut opening, mut recovering, mut watch] = database.callers().await;
    opening.run("BEGIN").await;
    opening.open(1).await;
    let waiter = recovering.pid();
    tokio::join!(biased; async { recovering.recover(1, None, 60_000).await.unwrap() }, async {
        watch.until_waits(waiter).await;
        opening.run("COMMIT").await;
    });
    let insert = opening.insert("key", 1, 11).await;
    holds!(insert.outcome == "session_gone", "{insert:?}");
    let outcome = opening.open(2).await;
    holds!(outcome == "closed", "{outcome}");
    Ok(())
}

/// As some managed services have it; K-2.
pub(crate) async fn a_timeline_that_cannot_be_read_leaves_the_base(database: &Database) -> Verdict {
    let mut caller = database.connect().await;
    caller.attach().await;
    caller.open(1).await;
    caller
        .run("UPDATE dlock.meta SET use_timeline = false, term = 5")
        .await;
    let (problem, warning) = caller.attach().await;
    holds!(
        problem.is_none() && warning.is_some(),
        "{problem:?} {warning:?}"
    );
    let token = caller.take("key", 1, 11).await;
    holds!(token >> 44 == 5, "{token}");
    let (term, _) = caller.recover(1, None, 0).await.unwrap();
    holds!(term == 6, "{term}");
    Ok(())
}

/// P7, P9, P10, F-4, F-5: tokens rise, for the same key and for new ones. On servers of its own.
#[test]
fn tokens_rise_through_crashes_and_promotions() {
    let mut primary = Postgres::builder().fsync(true).start().unwrap();
    primary.create_database("locks").unwrap();
    primary
        .psql("locks", &store_postgres::schema::sql())
        .unwrap();
    // The functions raise it.
    primary
        .psql(
            "locks",
            "ALTER DATABASE locks SET synchronous_commit = off;
             SELECT dlock.open_session_1('tests', 1, gen_random_uuid(), 'owner', 86400000, 500)",
        )
        .unwrap();
    let mut last = rises(&primary, 0);
    for _ in 0..2 {
        primary.restart(Mode::Immediate).unwrap();
        last = rises(&primary, last);
    }
    // The second one never follows the first one, so that they get the same timeline.
    let standbys = [primary.standby().unwrap(), primary.standby().unwrap()];
    for standby in &standbys {
        standby.catch_up_with(&primary).unwrap();
        standby.cut_replication().unwrap();
    }
    for _ in 0..50 {
        // Those that no standby sees.
        last = rises(&primary, last);
    }
    let refused = standbys[0].psql("locks", KNOWN_KEY).unwrap_err();
    assert!(refused.to_string().contains("25006"), "{refused}");
    let free = standbys[0].psql(
        "locks",
        "SELECT token IS NULL FROM dlock.read_1('tests', 'key')",
    );
    assert_eq!(free.unwrap(), "t");
    primary.kill().unwrap();
    let term = last >> 44;
    for mut standby in standbys {
        standby.promote().unwrap();
        last = rises(&standby, last);
        assert_eq!(last >> 44, term + 1);
        standby.kill().unwrap();
    }
}

const KNOWN_KEY: &str = "SELECT token FROM dlock.try_insert_1(
    'tests', 'key', 1, gen_random_uuid(), 'x', false, 500)";
const NEW_KEY: &str = "SELECT token FROM dlock.try_insert_1(
    'tests', gen_random_uuid()::text, 1, gen_random_uuid(), 'x', false, 500)";

/// Takes a lock that was never held and one that was: the last token.
fn rises(server: &Postgres, mut last: i64) -> i64 {
    for sql in [NEW_KEY, KNOWN_KEY] {
        let token: i64 = server.psql("locks", sql).unwrap().parse().unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    let release =
        format!("SELECT released FROM dlock.release_1('tests', 'key', {last}, true, 500)");
    assert_eq!(server.psql("locks", &release).unwrap(), "t");
    last
}
