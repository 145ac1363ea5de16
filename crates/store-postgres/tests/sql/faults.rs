//! Faults planted into the text of the schema, each of which some test has to notice: a test that
//! cannot fail shows nothing. And the stress that they are measured by.

use super::support::stress::{SLOW, stress, stress_batches};
use super::support::{Database, Verdict, block_on};
use super::{batches, interleavings, queue, renewals, sessions, terms, tokens, upkeep};

/// INV-01, INV-04, INV-07, INV-08, backends test 43, P2: with numbers that are slow to come.
mod the_schema_stands_the_stress {
    macro_rules! runs {
        ($($name:ident: $seed:literal),+ $(,)?) => {
            $(
                #[test]
                fn $name() {
                    let database = super::Database::with(&[super::SLOW]);
                    let verdict = super::block_on(super::stress(&database, $seed));
                    assert_eq!(verdict, Ok(()));
                }
            )+
        };
    }

    runs!(once: 1, twice: 2, three_times: 3, four_times: 4, five_times: 5);
}

/// INV-01, INV-04, backends test 43: by batches alone.
#[test]
fn the_schema_stands_the_stress_by_batches() {
    let database = Database::with(&[SLOW]);
    assert_eq!(block_on(stress_batches(&database)), Ok(()));
}

/// Leaves out the short way to a grant, which asks all questions in one statement.
const LONG_WAY: (&str, &str) = (
    "  IF v_locked THEN\n    SELECT y.incarnation",
    "  IF false THEN\n    SELECT y.incarnation",
);

/// Draws a number before it waits for the row, and grants with it.
const EARLY: [(&str, &str); 2] = [
    (
        "  -- Mostly the key is free,",
        "  token := (SELECT t.token FROM dlock.mint_1(0) t);\n  -- Mostly the key is free,",
    ),
    (
        "SET token = dlock.draw_1(v_term, greatest(x.token, x.floor, v_retired)), held = true",
        "SET token = try_insert_1.token, held = true",
    ),
];

/// Has an insert ask everything before it waits for the row, and again after it.
const UNLOCKED: (&str, &str) = (
    "AND NOT x.held FOR NO KEY UPDATE;\n  v_locked := FOUND;",
    "AND false FOR NO KEY UPDATE;\n  v_locked := FOUND;",
);

/// Believes what it saw of the row before it waited for it.
const STALE_ROW: (&str, &str) = (
    "    l := dlock.lock_row_1(p_ns, p_key);\n    v_locked := true;\n",
    "    PERFORM dlock.lock_row_1(p_ns, p_key);\n    v_locked := true;\n",
);

/// Draws the numbers of a batch before it has the rows, and grants with the last one.
const EARLY_IN_A_BATCH: [(&str, &str); 2] = [
    (
        "  SELECT array_agg(u.n), array_agg(l.at) INTO v_mine, v_rows
    FROM unnest(p_keys) WITH",
        "  PERFORM dlock.draw_1(0, 0);
  SELECT array_agg(u.n), array_agg(l.at) INTO v_mine, v_rows
    FROM unnest(p_keys) WITH",
    ),
    (
        "SET token = dlock.draw_1(m.term, greatest(x.token, x.floor, m.retired)), held = true",
        "SET token = (m.term << 44) + currval('dlock.fencing_token_seq'), held = true",
    ),
];

async fn slowed(database: &Database) -> Verdict {
    stress(database, 7).await
}

/// Replaces text and has a case find it out.
macro_rules! faults {
    ($($name:ident: $case:path, [$($replacement:expr),+ $(,)?];)+) => {
        $(
            #[test]
            fn $name() {
                let database = Database::with(&[$($replacement),+]);
                let verdict = block_on($case(&database));
                let noticed = verdict.expect_err("nobody noticed");
                println!("{noticed}");
            }
        )+
    };
}

faults!(
    a_number_drawn_before_the_lock_is_noticed: slowed, [
        SLOW,
        EARLY[0], EARLY[1],
    ];
    a_number_drawn_before_the_wait_is_noticed:
        interleavings::a_token_that_waited_for_the_row_is_above_the_one_granted_meanwhile, [
        EARLY[0], EARLY[1],
    ];
    spent_attempts_not_asked_for_are_noticed:
        tokens::an_attempt_that_was_given_up_is_never_granted, [
        LONG_WAY,
        (
            "    IF FOUND THEN\n      outcome := 'ended';",
            "    IF false THEN\n      outcome := 'ended';",
        ),
    ];
    overwritten_attempts_not_remembered_are_noticed:
        tokens::an_attempt_that_was_overwritten_stays_remembered, [
        ("IF l.attempt IS NOT NULL THEN", "IF false THEN"),
    ];
    attempts_forgotten_with_their_row_are_noticed:
        tokens::an_attempt_is_remembered_after_its_row_is_forgotten, [
        ("WHERE f.attempt IS NOT NULL\n", "WHERE false\n"),
    ];
    an_abandon_without_the_lock_is_noticed:
        interleavings::an_attempt_given_up_while_its_grant_is_on_the_way_holds_nothing, [
        ("  PERFORM dlock.lock_row_1(p_ns, p_key);\n  INSERT", "  INSERT"),
    ];
    a_queue_not_asked_for_is_noticed: queue::nobody_but_the_first_in_line_is_granted, [
        LONG_WAY,
        ("    IF v_first IS NOT NULL THEN\n      head :=", "    IF false THEN\n      head :="),
    ];
    a_queue_not_asked_for_is_noticed_by_the_stress: slowed, [
        LONG_WAY,
        SLOW,
        ("    IF v_first IS NOT NULL THEN\n      head :=", "    IF false THEN\n      head :="),
    ];
    a_queue_asked_for_before_the_lock_is_noticed:
        interleavings::nobody_who_waits_barges_past_a_place_taken_meanwhile, [
        UNLOCKED,
        (
            "    SELECT w.ticket INTO v_first FROM dlock.waiters w
     WHERE w.namespace = p_ns AND w.lock_key = p_key ORDER BY w.ticket LIMIT 1;

    IF",
            "    IF NOT v_locked THEN
      SELECT w.ticket INTO v_first FROM dlock.waiters w
       WHERE w.namespace = p_ns AND w.lock_key = p_key ORDER BY w.ticket LIMIT 1;
    END IF;

    IF",
        ),
    ];
    a_session_asked_for_before_the_lock_is_noticed:
        interleavings::nothing_is_granted_to_a_session_that_closes_while_its_insert_waits, [
        UNLOCKED,
        (
            "    SELECT * INTO s FROM dlock.sessions x
     WHERE x.namespace = p_ns AND x.session = p_session AND x.closed_at IS NULL;
    IF NOT FOUND",
            "    IF NOT v_locked THEN
      SELECT * INTO s FROM dlock.sessions x
       WHERE x.namespace = p_ns AND x.session = p_session AND x.closed_at IS NULL;
    END IF;
    IF s.session IS NULL",
        ),
    ];
    a_holder_asked_for_before_the_lock_is_noticed:
        interleavings::who_waited_for_a_grant_is_told_of_its_holder, [UNLOCKED, STALE_ROW];
    a_holder_asked_for_before_the_lock_is_noticed_by_the_stress: slowed, [
        SLOW,
        UNLOCKED,
        STALE_ROW,
    ];
    the_short_way_without_a_lock_is_noticed:
        interleavings::nobody_who_waits_barges_past_a_place_taken_meanwhile, [
        (
            "AND NOT x.held FOR NO KEY UPDATE;\n  v_locked := FOUND;",
            "AND NOT x.held;\n  v_locked := FOUND;",
        ),
    ];
    a_lapsed_grant_renewed_by_an_extend_is_noticed:
        renewals::an_expired_grant_is_not_revived_by_an_extend_that_waited, [
        (
            "  PERFORM FROM dlock.locks x
    WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.token = p_token FOR NO KEY UPDATE;\n",
            "",
        ),
    ];
    a_lapsed_session_renewed_is_noticed:
        renewals::an_expired_session_is_not_revived_by_a_keep_alive_that_waited, [
        (
            "  PERFORM FROM dlock.sessions s
    WHERE s.namespace = p_ns AND s.session = p_session FOR NO KEY UPDATE;\n  UPDATE dlock.sessions s
     SET expires_at",
            "  UPDATE dlock.sessions s
     SET expires_at",
        ),
    ];
    a_lease_of_its_own_is_noticed: renewals::no_grant_outlives_its_session, [
        (
            "granted_at = clock_timestamp(), expires_at = s.expires_at",
            "granted_at = clock_timestamp(),
             expires_at = clock_timestamp() + s.ttl_ms * interval '1 millisecond'",
        ),
    ];
    a_late_renewal_called_gone_is_noticed:
        renewals::a_busy_row_is_late_and_the_others_are_renewed, [
        ("THEN 'gone' ELSE 'late' END", "THEN 'gone' ELSE 'gone' END"),
    ];
    a_late_renewal_called_renewed_is_noticed:
        renewals::a_busy_row_is_late_and_the_others_are_renewed, [
        ("WHERE l.lock_key IS NULL OR l.expires_at < v_ends;", "WHERE l.lock_key IS NULL;"),
    ];
    what_is_gone_and_not_made_so_is_noticed: renewals::what_is_answered_as_gone_is_made_gone, [
        (
            "        UPDATE dlock.locks x SET held = false
         WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.held;\n",
            "",
        ),
    ];
    an_open_that_revives_is_noticed: sessions::a_closed_session_is_never_opened_again, [
        ("IF NOT FOUND OR s.closed_at IS NOT NULL THEN", "IF NOT FOUND THEN"),
        (
            "       SET expires_at = greatest(
             x.expires_at,",
            "       SET closed_at = NULL, expires_at = greatest(
             x.expires_at,",
        ),
    ];
    a_close_without_a_tombstone_is_noticed:
        sessions::a_session_closed_before_it_was_opened_stays_closed, [
        (
            "    ON CONFLICT (namespace, session) DO NOTHING;
    IF FOUND THEN
      RETURN;",
            "    ON CONFLICT (namespace, session) DO NOTHING;
    IF FOUND THEN
      DELETE FROM dlock.sessions WHERE session = p_session;
      RETURN;",
        ),
    ];
    a_holder_whose_session_is_not_asked_for_is_noticed:
        sessions::closing_ends_all_grants_by_one_row, [
        ("      v_lives := FOUND;", "      v_lives := true;"),
        (
            "  SELECT v_ends > clock_timestamp() AND EXISTS (",
            "  SELECT v_ends > clock_timestamp() OR EXISTS (",
        ),
    ];
    an_incarnation_not_compared_is_noticed:
        sessions::a_session_that_took_a_lock_leaves_nothing_to_its_namesake, [
        (
            "        WHERE s.namespace = l.namespace AND s.session = l.session
          AND s.incarnation = l.incarnation AND s.closed_at IS NULL);",
            "        WHERE s.namespace = l.namespace AND s.session = l.session
          AND s.closed_at IS NULL);",
        ),
    ];
    a_place_taken_without_the_lock_is_noticed:
        interleavings::a_release_that_waits_for_an_enqueuer_wakes_it, [
        (
            "    l := dlock.lock_row_1(p_ns, p_key);
    v_locked := true;
  END LOOP;",
            "    IF NOT (v_lives AND p_queue) THEN
      l := dlock.lock_row_1(p_ns, p_key);
    END IF;
    v_locked := true;
  END LOOP;",
        ),
    ];
    a_skipped_attempt_not_remembered_is_noticed:
        queue::one_that_was_called_and_does_not_come_loses_its_place_for_good, [
        (
            "      VALUES (p_ns, w.session, w.attempt, clock_timestamp())",
            "      SELECT p_ns, w.session, w.attempt, clock_timestamp() WHERE false",
        ),
    ];
    forgotten_rows_without_their_tokens_are_noticed:
        tokens::tokens_rise_above_those_of_forgotten_rows, [
        ("greatest(p_above, m.retired)", "p_above"),
    ];
    a_counter_that_is_believed_is_noticed: tokens::tokens_rise_after_the_sequence_was_set_back, [
        (
            "SELECT greatest((p_term << 44) + nextval('dlock.fencing_token_seq'), p_above + 1)",
            "SELECT (p_term << 44) + nextval('dlock.fencing_token_seq')",
        ),
    ];
    the_short_way_past_spent_attempts_is_noticed:
        tokens::an_attempt_that_was_given_up_is_never_granted, [
        (
            "       AND NOT EXISTS (SELECT FROM dlock.spent e
                        WHERE e.namespace = p_ns AND e.session = p_session
                          AND e.attempt = p_attempt)\n",
            "",
        ),
    ];
    the_short_way_past_a_queue_is_noticed:
        interleavings::nobody_who_waits_barges_past_a_place_taken_meanwhile, [
        (
            "
       AND NOT EXISTS (SELECT FROM dlock.waiters w
                        WHERE w.namespace = p_ns AND w.lock_key = p_key);\n",
            ";\n",
        ),
    ];
    the_short_way_past_a_queue_is_noticed_by_the_stress: slowed, [
        SLOW,
        (
            "
       AND NOT EXISTS (SELECT FROM dlock.waiters w
                        WHERE w.namespace = p_ns AND w.lock_key = p_key);\n",
            ";\n",
        ),
    ];
    the_short_way_past_a_closed_session_is_noticed:
        interleavings::nothing_is_granted_to_a_session_that_closes_while_its_insert_waits, [
        ("AND y.closed_at IS NULL AND y.expires_at > clock_timestamp()", ""),
    ];
    the_short_way_past_an_attempt_is_noticed:
        tokens::an_attempt_that_was_overwritten_stays_remembered, [
        ("AND x.lock_key = p_key AND x.attempt IS NULL", "AND x.lock_key = p_key"),
    ];
    the_short_way_past_a_timeline_is_noticed:
        terms::a_new_timeline_raises_the_term_and_the_counter, [
        ("m.timeline_seen = dlock.timeline_1())\n", "true)\n"),
    ];
    the_short_way_past_forgotten_tokens_is_noticed:
        tokens::tokens_rise_above_those_of_forgotten_rows, [
        ("greatest(x.token, x.floor, v_retired)), held", "greatest(x.token, x.floor)), held"),
    ];
    a_lease_of_its_own_on_the_short_way_is_noticed: renewals::no_grant_outlives_its_session, [
        (
            "expires_at = v_ends\n       WHERE",
            "expires_at = clock_timestamp() + interval '2 days'\n       WHERE",
        ),
    ];
    a_reaper_that_judges_by_its_first_look_is_noticed: upkeep::spares_what_it_does_not_see, [
        upkeep::GATE,
        (
            "   WHERE x.namespace = p_ns AND x.lock_key = k.lock_key AND x.held
     AND NOT EXISTS (SELECT FROM dlock.grants g
                      WHERE g.namespace = p_ns AND g.lock_key = k.lock_key);",
            "   WHERE x.namespace = p_ns AND x.lock_key = k.lock_key AND x.held;",
        ),
    ];
    a_batch_that_waits_for_a_row_is_noticed: batches::a_row_that_somebody_works_on_is_skipped, [
        (
            "AND NOT x.held AND x.attempt IS NULL
                     FOR NO KEY UPDATE SKIP LOCKED",
            "AND NOT x.held AND x.attempt IS NULL
                     FOR NO KEY UPDATE",
        ),
    ];
    a_batch_of_releases_that_waits_for_a_row_is_noticed:
        batches::a_row_that_somebody_works_on_is_skipped, [
        (
            "AND x.token = u.t AND x.held
                     FOR NO KEY UPDATE SKIP LOCKED",
            "AND x.token = u.t AND x.held
                     FOR NO KEY UPDATE",
        ),
    ];
    a_batch_past_spent_attempts_is_noticed: batches::an_attempt_that_was_given_up_is_left_alone, [
        (
            "       AND (SELECT true FROM dlock.spent e
             WHERE e.namespace = p_ns AND e.session = p_sessions[u.n]
               AND e.attempt = p_attempts[u.n]) IS NULL\n",
            "",
        ),
    ];
    a_batch_past_a_queue_is_noticed: batches::a_key_with_somebody_in_line_is_left_alone, [
        (
            "       AND (SELECT true FROM dlock.waiters w
             WHERE w.namespace = p_ns AND w.lock_key = p_keys[u.n] LIMIT 1) IS NULL
    RETURNING u.n, x.token",
            "    RETURNING u.n, x.token",
        ),
    ];
    a_batch_past_a_closed_session_is_noticed:
        batches::a_session_that_is_gone_is_left_alone_beside_living_ones, [
        ("                       AND s.closed_at IS NULL AND s.expires_at > clock_timestamp()\n", ""),
    ];
    a_batch_past_an_attempt_is_noticed: batches::an_attempt_that_is_not_settled_is_left_alone, [
        ("AND NOT x.held AND x.attempt IS NULL\n                     FOR", "AND NOT x.held\n FOR"),
        ("x.ctid = u.at AND NOT x.held AND x.attempt IS NULL", "x.ctid = u.at AND NOT x.held"),
    ];
    a_batch_past_a_timeline_is_noticed: batches::a_new_timeline_is_left_to_single_calls, [
        ("x.timeline_seen = dlock.timeline_1());", "true);"),
    ];
    a_batch_past_forgotten_tokens_is_noticed:
        batches::tokens_of_a_batch_rise_above_those_of_forgotten_rows, [
        ("greatest(x.token, x.floor, m.retired)), held", "greatest(x.token, x.floor)), held"),
    ];
    a_batch_that_believes_the_counter_is_noticed:
        batches::tokens_of_a_batch_rise_after_the_sequence_was_set_back, [
        (
            "SET token = dlock.draw_1(m.term, greatest(x.token, x.floor, m.retired)), held = true",
            "SET token = (m.term << 44) + nextval('dlock.fencing_token_seq'), held = true",
        ),
    ];
    numbers_of_a_batch_drawn_before_the_locks_are_noticed_by_the_stress: stress_batches, [
        SLOW,
        EARLY_IN_A_BATCH[0], EARLY_IN_A_BATCH[1],
    ];
    a_batch_of_releases_past_a_queue_is_noticed:
        batches::a_release_with_somebody_to_wake_is_left_alone, [
        (
            "       AND (SELECT true FROM dlock.waiters w
             WHERE w.namespace = p_ns AND w.lock_key = p_keys[u.n] LIMIT 1) IS NULL
    RETURNING u.n, x.expires_at",
            "    RETURNING u.n, x.expires_at",
        ),
    ];
    a_batch_of_releases_past_a_closed_session_is_noticed:
        batches::a_release_of_a_session_that_is_gone_releases_nothing, [
        ("         AND s.incarnation = x.incarnation AND s.closed_at IS NULL);", ");"),
    ];
);
