-- Sessions: opened, kept alive, closed.

-- Ends a session whose time is up, for good, and says whether it is ended. It never waits: a
-- session whose row somebody else works on is just being renewed or closed, and is left alone.
CREATE FUNCTION dlock.end_expired_1(p_ns text, p_session bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE AS $f$
BEGIN
  PERFORM FROM dlock.sessions s
    WHERE s.namespace = p_ns AND s.session = p_session FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE dlock.sessions s SET closed_at = clock_timestamp()
   WHERE s.namespace = p_ns AND s.session = p_session
     AND s.closed_at IS NULL AND s.expires_at <= clock_timestamp();
  RETURN NOT EXISTS (
    SELECT FROM dlock.sessions s
     WHERE s.namespace = p_ns AND s.session = p_session AND s.closed_at IS NULL);
END $f$;

-- outcome: open, gone (closed or expired before), foreign (another store object's), closed (the
-- namespace is being recovered).
CREATE FUNCTION dlock.open_session_1(
  p_ns text, p_session bigint, p_instance uuid, p_owner text, p_ttl_ms bigint, p_lock_ms int,
  OUT outcome text, OUT remaining_ms bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
DECLARE
  s dlock.sessions;
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  -- A recovery holds it exclusively, so that no session slips in unseen by it.
  PERFORM pg_advisory_xact_lock_shared(1684828003, hashtext(p_ns));
  PERFORM FROM dlock.recoveries r WHERE r.namespace = p_ns AND r.opens_at > clock_timestamp();
  IF FOUND THEN
    outcome := 'closed';
    RETURN;
  END IF;
  INSERT INTO dlock.sessions AS x
         (namespace, session, instance, owner, ttl_ms, opened_at, expires_at)
  VALUES (p_ns, p_session, p_instance, p_owner, p_ttl_ms, clock_timestamp(),
          clock_timestamp() + p_ttl_ms * interval '1 millisecond')
  ON CONFLICT (namespace, session) DO NOTHING
  RETURNING x.* INTO s;
  IF NOT FOUND THEN
    SELECT * INTO s FROM dlock.sessions x
     WHERE x.namespace = p_ns AND x.session = p_session FOR NO KEY UPDATE;
    IF NOT FOUND OR s.closed_at IS NOT NULL THEN
      outcome := 'gone';
      RETURN;
    END IF;
    IF s.instance <> p_instance THEN
      outcome := 'foreign';
      RETURN;
    END IF;
    IF s.expires_at <= clock_timestamp() AND dlock.end_expired_1(p_ns, p_session) THEN
      outcome := 'gone';
      RETURN;
    END IF;
    UPDATE dlock.sessions x
       SET expires_at = greatest(
             x.expires_at, clock_timestamp() + x.ttl_ms * interval '1 millisecond')
     WHERE x.namespace = p_ns AND x.session = p_session
    RETURNING x.* INTO s;
  END IF;
  outcome := 'open';
  remaining_ms := dlock.left_ms_1(s.expires_at);
END $f$;

-- Another store object takes the session over, and renews it. NULL: it is gone.
CREATE FUNCTION dlock.adopt_session_1(
  p_ns text, p_session bigint, p_instance uuid, p_lock_ms int,
  OUT ttl_ms bigint, OUT remaining_ms bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  PERFORM FROM dlock.sessions s
    WHERE s.namespace = p_ns AND s.session = p_session FOR NO KEY UPDATE;
  UPDATE dlock.sessions s
     SET instance = p_instance,
         expires_at = greatest(
           s.expires_at, clock_timestamp() + s.ttl_ms * interval '1 millisecond')
   WHERE s.namespace = p_ns AND s.session = p_session
     AND s.closed_at IS NULL AND s.expires_at > clock_timestamp()
  RETURNING s.ttl_ms, dlock.left_ms_1(s.expires_at) INTO ttl_ms, remaining_ms;
  IF NOT FOUND THEN
    PERFORM dlock.end_expired_1(p_ns, p_session);
  END IF;
END $f$;

-- No row: the session is gone. Else a row of kind session, and one for each grant that was not
-- renewed: gone, and by whom where it was revoked; or late: somebody else works on its row, what is
-- left is its own, and the caller extends it by itself.
CREATE FUNCTION dlock.keep_alive_1(
  p_ns text, p_session bigint, p_keys text[], p_tokens bigint[], p_lock_ms int)
  RETURNS TABLE (kind text, lock_key text, token bigint, remaining_ms bigint, revoked_by text,
                 revoked_reason text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  v_ends timestamptz;
  v_incarnation bigint;
  v_wanted int := coalesce(cardinality(p_keys), 0);
  v_renewed int := 0;
  v_more int;
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  -- First the lock, then the question: an UPDATE that waited for somebody who only locked the row
  -- does not look at the clock again.
  PERFORM FROM dlock.sessions s
    WHERE s.namespace = p_ns AND s.session = p_session FOR NO KEY UPDATE;
  UPDATE dlock.sessions s
     SET expires_at = greatest(
           s.expires_at, clock_timestamp() + s.ttl_ms * interval '1 millisecond')
   WHERE s.namespace = p_ns AND s.session = p_session
     AND s.closed_at IS NULL AND s.expires_at > clock_timestamp()
  RETURNING s.expires_at, s.incarnation INTO v_ends, v_incarnation;
  IF NOT FOUND THEN
    -- What is answered as gone is made gone, or a clock that steps back could revive it.
    PERFORM dlock.end_expired_1(p_ns, p_session);
    RETURN;
  END IF;

  IF v_wanted > 0 THEN
    -- One busy row must not delay all others.
    WITH mine AS MATERIALIZED (
      SELECT l.lock_key, l.token
        FROM unnest(p_keys, p_tokens) AS u(k, t)
        JOIN dlock.locks l ON l.namespace = p_ns AND l.lock_key = u.k AND l.token = u.t
       WHERE l.held AND l.session = p_session AND l.incarnation = v_incarnation
         AND l.expires_at > clock_timestamp()
         FOR NO KEY UPDATE OF l SKIP LOCKED)
    UPDATE dlock.locks l SET expires_at = greatest(l.expires_at, v_ends)
      FROM mine
     WHERE l.namespace = p_ns AND l.lock_key = mine.lock_key AND l.token = mine.token AND l.held;
    GET DIAGNOSTICS v_renewed = ROW_COUNT;
  END IF;

  IF v_renewed < v_wanted THEN
    -- Gone, or busy: mostly with somebody who takes a place and is done in a moment.
    BEGIN
      PERFORM set_config('lock_timeout', least(p_lock_ms, 100)::text, true);
      PERFORM FROM unnest(p_keys, p_tokens) AS u(k, t)
        JOIN dlock.locks l ON l.namespace = p_ns AND l.lock_key = u.k AND l.token = u.t
       WHERE l.held AND l.session = p_session AND l.incarnation = v_incarnation
         AND l.expires_at < v_ends
       ORDER BY l.lock_key FOR NO KEY UPDATE OF l;
      UPDATE dlock.locks l SET expires_at = v_ends
        FROM unnest(p_keys, p_tokens) AS u(k, t)
       WHERE l.namespace = p_ns AND l.lock_key = u.k AND l.token = u.t AND l.held
         AND l.session = p_session AND l.incarnation = v_incarnation
         AND l.expires_at > clock_timestamp() AND l.expires_at < v_ends;
      GET DIAGNOSTICS v_more = ROW_COUNT;
      v_renewed := v_renewed + v_more;
      UPDATE dlock.locks l SET held = false
        FROM unnest(p_keys, p_tokens) AS u(k, t)
       WHERE l.namespace = p_ns AND l.lock_key = u.k AND l.token = u.t AND l.held
         AND l.session = p_session AND l.incarnation = v_incarnation
         AND l.expires_at <= clock_timestamp();
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      v_more := 0;
    END;
  END IF;

  RETURN QUERY SELECT 'session', NULL::text, NULL::bigint, dlock.left_ms_1(v_ends), NULL::text,
                      NULL::text;
  IF v_renewed < v_wanted THEN
    RETURN QUERY
      SELECT CASE WHEN l.lock_key IS NULL THEN 'gone' ELSE 'late' END, u.k, u.t,
             CASE WHEN l.lock_key IS NOT NULL THEN greatest(dlock.left_ms_1(l.expires_at), 0) END,
             r.by::text, r.reason::text
        FROM unnest(p_keys, p_tokens) AS u(k, t)
        LEFT JOIN dlock.locks l
          ON l.namespace = p_ns AND l.lock_key = u.k AND l.token = u.t AND l.held
         AND l.session = p_session AND l.incarnation = v_incarnation
        LEFT JOIN dlock.revocations r
          ON r.namespace = p_ns AND r.lock_key = u.k AND r.previous_token = u.t AND r.revoked
       WHERE l.lock_key IS NULL OR l.expires_at < v_ends;
  END IF;
END $f$;

-- Every grant and place of the session names its row, and is nothing without it. Answers with whom
-- to wake: the first in line of what the session held or waited for. With an instance it closes only
-- a session of that store object: another may have adopted it.
CREATE FUNCTION dlock.close_session_1(
  p_ns text, p_session bigint, p_lock_ms int, p_instance uuid DEFAULT NULL)
  RETURNS TABLE (wake_channel text, wake_attempt uuid)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
DECLARE
  v_incarnation bigint;
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  UPDATE dlock.sessions s SET closed_at = clock_timestamp()
   WHERE s.namespace = p_ns AND s.session = p_session AND s.closed_at IS NULL
     AND (p_instance IS NULL OR s.instance = p_instance)
  RETURNING s.incarnation INTO v_incarnation;
  IF NOT FOUND THEN
    -- Never seen: an open that is still on its way must find it closed.
    INSERT INTO dlock.sessions (namespace, session, owner, ttl_ms, opened_at, expires_at, closed_at)
    VALUES (p_ns, p_session, '', 1000, clock_timestamp(), clock_timestamp(), clock_timestamp())
    ON CONFLICT (namespace, session) DO NOTHING;
    IF FOUND THEN
      RETURN;
    END IF;
    UPDATE dlock.sessions s SET closed_at = clock_timestamp()
     WHERE s.namespace = p_ns AND s.session = p_session AND s.closed_at IS NULL
       AND (p_instance IS NULL OR s.instance = p_instance)
    RETURNING s.incarnation INTO v_incarnation;
    IF NOT FOUND THEN
      RETURN;
    END IF;
  END IF;
  RETURN QUERY
    SELECT dlock.channel_1(head.instance), head.attempt
      FROM (SELECT DISTINCT w.lock_key FROM dlock.waiters w WHERE w.namespace = p_ns) q
      JOIN dlock.locks l ON l.namespace = p_ns AND l.lock_key = q.lock_key
     CROSS JOIN LATERAL (
           SELECT p.instance, p.attempt FROM dlock.places p
            WHERE p.namespace = p_ns AND p.lock_key = q.lock_key ORDER BY p.ticket LIMIT 1) head
     WHERE NOT EXISTS (SELECT FROM dlock.grants g
                        WHERE g.namespace = p_ns AND g.lock_key = q.lock_key)
       AND ((l.session = p_session AND l.incarnation = v_incarnation)
         OR EXISTS (SELECT FROM dlock.waiters w
                     WHERE w.namespace = p_ns AND w.lock_key = q.lock_key
                       AND w.session = p_session AND w.incarnation = v_incarnation));
END $f$;
