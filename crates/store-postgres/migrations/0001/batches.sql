-- Grants and releases of one store object that are asked for at the same time: the short ways of
-- try_insert_1 and release_1 for many keys in one transaction. What takes more than the short way is
-- left alone, has no row in the answer, and goes by itself. Rows that somebody else works on are
-- skipped and never waited for, so that no call is held up by the key of another.
--
-- Their plans are made while the tables may be small, and stay. So nothing is left to be joined:
-- every table is asked by its whole key, and rows that are locked are found by where they are; that
-- they are what the caller names is compared again in the statement that writes.

-- n: the place in the arrays, from 1.
CREATE FUNCTION dlock.try_insert_many_1(
  p_ns text, p_keys text[], p_sessions bigint[], p_attempts uuid[], p_payloads bytea[],
  p_lock_ms int)
  RETURNS TABLE (n int, token bigint, remaining_ms bigint, lifted boolean)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $f$
#variable_conflict use_column
DECLARE
  m dlock.meta;
  v_mine int[];
  v_rows tid[];
BEGIN
  PERFORM dlock.prelude_1(least(p_lock_ms, 100));
  SELECT array_agg(u.n), array_agg(l.at) INTO v_mine, v_rows
    FROM unnest(p_keys) WITH ORDINALITY AS u(k, n),
         LATERAL (SELECT x.ctid AS at FROM dlock.locks x
                   WHERE x.namespace = p_ns AND x.lock_key = u.k
                     AND NOT x.held AND x.attempt IS NULL
                     FOR NO KEY UPDATE SKIP LOCKED) l;
  IF cardinality(v_mine) IS DISTINCT FROM cardinality(p_keys) THEN
    -- Who makes the same rows makes them in the same order.
    WITH made AS (
      INSERT INTO dlock.locks AS x (namespace, lock_key)
      SELECT p_ns, u.k FROM unnest(p_keys, p_sessions) AS u(k, s)
       WHERE (SELECT true FROM dlock.locks l
               WHERE l.namespace = p_ns AND l.lock_key = u.k) IS NULL
         AND (SELECT y.closed_at IS NULL FROM dlock.sessions y
               WHERE y.namespace = p_ns AND y.session = u.s)
       ORDER BY u.k COLLATE "C"
      ON CONFLICT (namespace, lock_key) DO NOTHING
      RETURNING array_position(p_keys, x.lock_key::text) AS n, x.ctid AS at)
    SELECT v_mine || array_agg(made.n), v_rows || array_agg(made.at) INTO v_mine, v_rows
      FROM made;
  END IF;
  SELECT * INTO m FROM dlock.meta x
   WHERE x.one AND (NOT x.use_timeline OR x.timeline_seen = dlock.timeline_1());
  IF NOT FOUND OR v_mine IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
    UPDATE dlock.locks x
       SET token = dlock.draw_1(m.term, greatest(x.token, x.floor, m.retired)), held = true,
           session = p_sessions[u.n], incarnation = y.incarnation, owner = y.owner,
           attempt = p_attempts[u.n], payload = p_payloads[u.n],
           granted_at = clock_timestamp(), expires_at = y.expires_at
      FROM unnest(v_mine, v_rows) AS u(n, at),
           LATERAL (SELECT s.incarnation, s.owner, s.expires_at FROM dlock.sessions s
                     WHERE s.namespace = p_ns AND s.session = p_sessions[u.n]
                       AND s.closed_at IS NULL AND s.expires_at > clock_timestamp()
                    OFFSET 0) y
     WHERE x.ctid = u.at AND NOT x.held AND x.attempt IS NULL
       AND x.namespace = p_ns AND x.lock_key = p_keys[u.n]
       AND (SELECT true FROM dlock.spent e
             WHERE e.namespace = p_ns AND e.session = p_sessions[u.n]
               AND e.attempt = p_attempts[u.n]) IS NULL
       AND (SELECT true FROM dlock.waiters w
             WHERE w.namespace = p_ns AND w.lock_key = p_keys[u.n] LIMIT 1) IS NULL
    RETURNING u.n, x.token, dlock.left_ms_1(x.expires_at),
              x.token <> (m.term << 44) + currval('dlock.fencing_token_seq');
END $f$;

-- A release that has somebody to wake is left alone as well.
CREATE FUNCTION dlock.release_many_1(
  p_ns text, p_keys text[], p_tokens bigint[], p_settled boolean[], p_lock_ms int)
  RETURNS TABLE (n int, released boolean)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan AS $f$
#variable_conflict use_column
DECLARE
  v_mine int[];
  v_rows tid[];
BEGIN
  PERFORM dlock.prelude_1(least(p_lock_ms, 100));
  SELECT array_agg(u.n), array_agg(l.at) INTO v_mine, v_rows
    FROM unnest(p_keys, p_tokens) WITH ORDINALITY AS u(k, t, n),
         LATERAL (SELECT x.ctid AS at FROM dlock.locks x
                   WHERE x.namespace = p_ns AND x.lock_key = u.k AND x.token = u.t AND x.held
                     FOR NO KEY UPDATE SKIP LOCKED) l;
  RETURN QUERY
    UPDATE dlock.locks x
       SET held = false, attempt = CASE WHEN NOT p_settled[u.n] THEN x.attempt END
      FROM unnest(v_mine, v_rows) AS u(n, at)
     WHERE x.ctid = u.at AND x.held AND x.token = p_tokens[u.n]
       AND x.namespace = p_ns AND x.lock_key = p_keys[u.n]
       AND (SELECT true FROM dlock.waiters w
             WHERE w.namespace = p_ns AND w.lock_key = p_keys[u.n] LIMIT 1) IS NULL
    RETURNING u.n, x.expires_at > clock_timestamp() AND EXISTS (
      SELECT FROM dlock.sessions s
       WHERE s.namespace = p_ns AND s.session = x.session
         AND s.incarnation = x.incarnation AND s.closed_at IS NULL);
END $f$;
