//! Renewing sessions and grants.

use super::support::{Caller, Database, Verdict, cases, holds};

cases!(
    a_busy_row_is_late_and_the_others_are_renewed,
    a_grant_whose_revoke_is_under_way_is_late_and_then_gone,
    a_revoke_that_is_rolled_back_leaves_the_grant_to_be_renewed,
    a_foreign_key_share_lock_disturbs_no_renewal,
    an_expired_grant_is_not_revived_by_an_extend_that_waited,
    an_expired_grant_is_not_revived_by_a_keep_alive_that_waited,
    an_expired_session_is_not_revived_by_a_keep_alive_that_waited,
    what_is_answered_as_gone_is_made_gone,
    no_grant_outlives_its_session,
    a_clock_that_steps_back_shortens_no_lease,
    renewals_side_by_side_all_succeed,
);

/// How long a session of these tests lives.
const TTL_MS: i64 = 20_000;

/// F-3, INV-05, KEEP-2.
pub(crate) async fn a_busy_row_is_late_and_the_others_are_renewed(database: &Database) -> Verdict {
    let [mut holder, mut busy] = database.callers().await;
    let grants = five(&mut holder).await;
    age(&mut holder).await;
    busy.run("BEGIN; SELECT FROM dlock.locks WHERE lock_key = 'key 3' FOR UPDATE")
        .await;
    let kept = holder.keep_alive(1, &named(&grants)).await;
    let late: Vec<_> = kept.iter().filter(|row| row.kind != "session").collect();
    holds!(kept.len() == 2 && late.len() == 1, "{kept:?}");
    holds!(late[0].kind == "late", "{kept:?}");
    holds!(late[0].key.as_deref() == Some("key 3"), "{kept:?}");
    let left = late[0].remaining_ms;
    holds!(
        left > Some(TTL_MS - 6_000) && left < Some(TTL_MS - 4_000),
        "what is left is not its own: {kept:?}"
    );
    let renewed: i64 = busy.value(RENEWED).await;
    holds!(renewed == 4, "{renewed} renewed");
    busy.run("COMMIT").await;
    let (key, token) = &grants[2];
    let left = holder.extend(key, *token).await;
    holds!(left > Some(TTL_MS - 1_000), "{left:?}");
    Ok(())
}

/// F-3: the revoke is not committed when the grants are renewed.
pub(crate) async fn a_grant_whose_revoke_is_under_way_is_late_and_then_gone(
    database: &Database,
) -> Verdict {
    let [mut holder, mut operator] = database.callers().await;
    let grants = five(&mut holder).await;
    operator.run("BEGIN").await;
    let revoked = operator.revoke("key 2", None, 1).await;
    holds!(revoked.revoked, "{revoked:?}");
    let kept = holder.keep_alive(1, &named(&grants)).await;
    let kinds: Vec<_> = kept.iter().map(|row| row.kind.as_str()).collect();
    holds!(kinds == ["session", "late"], "{kept:?}");
    operator.run("COMMIT").await;
    let kept = holder.keep_alive(1, &named(&grants)).await;
    let kinds: Vec<_> = kept.iter().map(|row| row.kind.as_str()).collect();
    holds!(kinds == ["session", "gone"], "{kept:?}");
    holds!(kept[1].key.as_deref() == Some("key 2"), "{kept:?}");
    holds!(
        kept[1].revoked_by.as_deref() == Some("operator"),
        "{kept:?}"
    );
    holds!(
        kept[1].revoked_reason.as_deref() == Some("reason"),
        "{kept:?}"
    );
    Ok(())
}

/// F-3.
pub(crate) async fn a_revoke_that_is_rolled_back_leaves_the_grant_to_be_renewed(
    database: &Database,
) -> Verdict {
    let [mut holder, mut operator] = database.callers().await;
    let grants = five(&mut holder).await;
    operator.run("BEGIN").await;
    operator.revoke("key 2", None, 1).await;
    operator.run("ROLLBACK").await;
    let kept = holder.keep_alive(1, &named(&grants)).await;
    holds!(kept.len() == 1, "{kept:?}");
    Ok(())
}

/// P23: so lock those whose foreign keys point here.
pub(crate) async fn a_foreign_key_share_lock_disturbs_no_renewal(database: &Database) -> Verdict {
    let [mut holder, mut other] = database.callers().await;
    let grants = five(&mut holder).await;
    other
        .run(
            "BEGIN; SELECT FROM dlock.locks FOR KEY SHARE;
             SELECT FROM dlock.sessions FOR KEY SHARE",
        )
        .await;
    let kept = holder.keep_alive(1, &named(&grants)).await;
    holds!(kept.len() == 1, "{kept:?}");
    Ok(())
}

/// F-13, P15, INV-07: it waited behind somebody who only locked the row.
pub(crate) async fn an_expired_grant_is_not_revived_by_an_extend_that_waited(
    database: &Database,
) -> Verdict {
    let [mut holder, mut busy, mut watch] = database.callers().await;
    let grants = five(&mut holder).await;
    let (key, token) = &grants[0];
    nearly_expired(&mut busy, "locks").await;
    busy.run("BEGIN; SELECT FROM dlock.locks WHERE lock_key = 'key 1' FOR UPDATE")
        .await;
    let waiter = holder.pid();
    let (left, ()) = tokio::join!(biased; holder.extend(key, *token), async {
        watch.until_waits(waiter).await;
        watch.run("SELECT pg_sleep(0.4)").await;
        busy.run("ROLLBACK").await;
    });
    holds!(left.is_none(), "{left:?}");
    made_gone(&mut watch, key).await
}

/// F-13, in the second pass of the renewal.
pub(crate) async fn an_expired_grant_is_not_revived_by_a_keep_alive_that_waited(
    database: &Database,
) -> Verdict {
    let [mut holder, mut busy, mut watch] = database.callers().await;
    let grants = five(&mut holder).await;
    busy.run(
        "UPDATE dlock.locks SET expires_at = clock_timestamp() + interval '40 ms'
          WHERE lock_key = 'key 1'",
    )
    .await;
    busy.run("BEGIN; SELECT FROM dlock.locks WHERE lock_key = 'key 1' FOR UPDATE")
        .await;
    let renew = named(&grants[..1]);
    let (kept, ()) = tokio::join!(biased; holder.keep_alive(1, &renew), async {
        watch.run("SELECT pg_sleep(0.06)").await;
        busy.run("ROLLBACK").await;
    });
    // Either it came to the row in time to make it gone, or it was busy for too long to say.
    let answer = &kept[1];
    let gone = answer.kind == "gone" || (answer.kind == "late" && answer.remaining_ms == Some(0));
    holds!(gone, "{kept:?}");
    holds!(watch.read("key 1").await.is_none(), "it was revived");
    let left = holder.extend("key 1", grants[0].1).await;
    holds!(left.is_none(), "{left:?}");
    made_gone(&mut watch, "key 1").await
}

/// F-13, KEEP-4.
pub(crate) async fn an_expired_session_is_not_revived_by_a_keep_alive_that_waited(
    database: &Database,
) -> Verdict {
    let [mut holder, mut busy, mut watch] = database.callers().await;
    five(&mut holder).await;
    nearly_expired(&mut busy, "sessions").await;
    busy.run("BEGIN; SELECT FROM dlock.sessions FOR UPDATE")
        .await;
    let waiter = holder.pid();
    let (kept, ()) = tokio::join!(biased; holder.keep_alive(1, &[]), async {
        watch.until_waits(waiter).await;
        watch.run("SELECT pg_sleep(0.4)").await;
        busy.run("ROLLBACK").await;
    });
    holds!(kept.is_empty(), "{kept:?}");
    let closed: bool = watch
        .value("SELECT closed_at IS NOT NULL FROM dlock.sessions")
        .await;
    holds!(closed, "it was not made gone");
    Ok(())
}

/// INV-07, P16: whoever was told so is right also when the clock steps back.
pub(crate) async fn what_is_answered_as_gone_is_made_gone(database: &Database) -> Verdict {
    let [mut holder, mut watch] = database.callers().await;
    let grants = five(&mut holder).await;
    watch
        .run("UPDATE dlock.locks SET expires_at = clock_timestamp() - interval '1 ms'")
        .await;
    let (key, token) = &grants[0];
    holds!(holder.extend(key, *token).await.is_none(), "extended");
    made_gone(&mut watch, key).await?;
    let kept = holder.keep_alive(1, &named(&grants[1..2])).await;
    holds!(kept.len() == 2 && kept[1].kind == "gone", "{kept:?}");
    made_gone(&mut watch, "key 2").await?;
    let repeated = holder.insert("key 3", 1, 103).await;
    holds!(repeated.outcome == "ended", "{repeated:?}");
    made_gone(&mut watch, "key 3").await?;
    let (released, _) = holder.release("key 4", grants[3].1).await;
    holds!(!released, "an expired grant is released");
    made_gone(&mut watch, "key 4").await?;
    watch
        .run("UPDATE dlock.sessions SET expires_at = clock_timestamp() - interval '1 ms'")
        .await;
    let insert = holder.insert("key 6", 1, 106).await;
    holds!(insert.outcome == "session_gone", "{insert:?}");
    watch
        .run("UPDATE dlock.sessions SET expires_at = clock_timestamp() + interval '1 h'")
        .await;
    holds!(
        holder.keep_alive(1, &[]).await.is_empty(),
        "the session is revived"
    );
    Ok(())
}

/// INV-02: whatever writes the lease of a grant takes it from that of the session.
pub(crate) async fn no_grant_outlives_its_session(database: &Database) -> Verdict {
    const OUTLIVING: &str =
        "SELECT count(*) FROM dlock.locks l JOIN dlock.sessions s USING (session)
                              WHERE l.held AND l.expires_at > s.expires_at";
    let mut holder = database.connect().await;
    let grants = five(&mut holder).await;
    let after_insert: i64 = holder.value(OUTLIVING).await;
    holds!(after_insert == 0, "{after_insert} after an insert");
    // On the short way, which a key takes that was held before.
    holder.release("key 5", grants[4].1).await;
    holder.take("key 5", 1, 200).await;
    let after_next: i64 = holder.value(OUTLIVING).await;
    holds!(after_next == 0, "{after_next} after the next insert");
    holder.run("SELECT pg_sleep(0.02)").await;
    holder.extend(&grants[0].0, grants[0].1).await;
    let after_extend: i64 = holder.value(OUTLIVING).await;
    holds!(after_extend == 0, "{after_extend} after an extend");
    holder.keep_alive(1, &named(&grants)).await;
    let after_renewal: i64 = holder.value(OUTLIVING).await;
    holds!(after_renewal == 0, "{after_renewal} after a renewal");
    Ok(())
}

/// P16, EXTEND-1: leases that lie far ahead are those of a clock that has stepped back.
pub(crate) async fn a_clock_that_steps_back_shortens_no_lease(database: &Database) -> Verdict {
    let mut holder = database.connect().await;
    let grants = five(&mut holder).await;
    for table in ["sessions", "locks"] {
        let ahead = format!("UPDATE dlock.{table} SET expires_at = expires_at + interval '1 h'");
        holder.run(&ahead).await;
    }
    let kept = holder.keep_alive(1, &named(&grants)).await;
    holds!(
        kept.len() == 1 && kept[0].remaining_ms > Some(3_600_000),
        "{kept:?}"
    );
    let left = holder.extend(&grants[0].0, grants[0].1).await;
    holds!(left > Some(3_600_000), "{left:?}");
    Ok(())
}

/// EXTEND-3, INV-03: also in opposite orders.
pub(crate) async fn renewals_side_by_side_all_succeed(database: &Database) -> Verdict {
    let [mut one, mut two, mut three] = database.callers().await;
    let grants = five(&mut one).await;
    let (forth, mut back) = (named(&grants), named(&grants));
    back.reverse();
    for _ in 0..20 {
        let (forth, back, left) = tokio::join!(
            biased;
            one.keep_alive(1, &forth),
            two.keep_alive(1, &back),
            three.extend(&grants[2].0, grants[2].1),
        );
        for kept in [forth, back] {
            holds!(kept.iter().all(|row| row.kind != "gone"), "{kept:?}");
            holds!(!kept.is_empty(), "the session is gone");
        }
        holds!(left.is_some(), "the grant is gone");
    }
    Ok(())
}

/// Grants that were renewed just now.
const RENEWED: &str = "SELECT count(*) FROM dlock.locks l JOIN dlock.sessions s USING (session)
                        WHERE l.expires_at = s.expires_at";

/// Five grants of session 1.
async fn five(holder: &mut Caller) -> Vec<(String, i64)> {
    holder.open_for(1, TTL_MS).await;
    let mut grants = Vec::new();
    for number in 1..=5_u8 {
        let key = format!("key {number}");
        let token = holder.take(&key, 1, 100 + u128::from(number)).await;
        grants.push((key, token));
    }
    grants
}

fn named(grants: &[(String, i64)]) -> Vec<(&str, i64)> {
    grants
        .iter()
        .map(|(key, token)| (key.as_str(), *token))
        .collect()
}

/// Lets five seconds of every lease pass.
async fn age(caller: &mut Caller) {
    for table in ["sessions", "locks"] {
        let older = format!("UPDATE dlock.{table} SET expires_at = expires_at - interval '5 s'");
        caller.run(&older).await;
    }
}

/// Leaves a quarter of a second.
async fn nearly_expired(caller: &mut Caller, table: &str) {
    let sql =
        format!("UPDATE dlock.{table} SET expires_at = clock_timestamp() + interval '250 ms'");
    caller.run(&sql).await;
}

async fn made_gone(caller: &mut Caller, key: &str) -> Verdict {
    let held: bool = caller
        .value(&format!(
            "SELECT held FROM dlock.locks WHERE lock_key = '{key}'"
        ))
        .await;
    holds!(!held, "{key} was not made gone");
    Ok(())
}
