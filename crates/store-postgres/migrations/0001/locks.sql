-- Grants: taken, extended, released, given up. The row lock comes first, and every question after
-- it is a statement of its own: a statement that waited for the row would answer by the snapshot
-- that it took before.

-- Locks the row of a key, making an empty one where there is none.
CREATE FUNCTION dlock.lock_row_1(p_ns text, p_key text) RETURNS dlock.locks
  LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
  l dlock.locks;
BEGIN
  FOR i IN 1 .. 100 LOOP
    SELECT * INTO l FROM dlock.locks x
     WHERE x.namespace = p_ns AND x.lock_key = p_key FOR NO KEY UPDATE;
    IF FOUND THEN
      RETURN l;
    END IF;
    -- A row of our own making is ours: the primary key keeps everybody else out until we commit.
    INSERT INTO dlock.locks AS x (namespace, lock_key) VALUES (p_ns, p_key)
    ON CONFLICT (namespace, lock_key) DO NOTHING RETURNING x.* INTO l;
    IF FOUND THEN
      RETURN l;
    END IF;
  END LOOP;
  RAISE EXCEPTION 'dlock: the row of the key comes and goes' USING ERRCODE = '40001';
END $f$;

-- The whole way of an insert. p_locked: the caller has the row lock of the key.
CREATE FUNCTION dlock.insert_1(
  p_ns text, p_key text, p_session bigint, p_attempt uuid, p_payload bytea, p_queue boolean,
  p_locked boolean,
  OUT outcome text, OUT token bigint, OUT remaining_ms bigint, OUT lifted boolean,
  OUT place bigint, OUT ahead int,
  OUT h_token bigint, OUT h_session bigint, OUT h_owner text, OUT h_payload bytea,
  OUT h_granted_at_ms bigint, OUT h_remaining_ms bigint,
  OUT wake_channel text, OUT wake_attempt uuid)
  LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
  l dlock.locks;
  s dlock.sessions;
  head dlock.waiters;
  minted record;
  v_first bigint;
  v_lives boolean;
  v_locked boolean := p_locked;
  v_refused boolean := false;
BEGIN
  -- What is not locked yet is first looked at without a lock, since most refusals need none, and
  -- locked if there turns out to be something to write.
  SELECT * INTO l FROM dlock.locks x WHERE x.namespace = p_ns AND x.lock_key = p_key;
  LOOP
    SELECT * INTO s FROM dlock.sessions x
     WHERE x.namespace = p_ns AND x.session = p_session AND x.closed_at IS NULL;
    IF NOT FOUND THEN
      outcome := 'session_gone';
      RETURN;
    END IF;
    IF s.expires_at <= clock_timestamp() THEN
      outcome := CASE WHEN dlock.end_expired_1(p_ns, p_session) THEN 'session_gone'
                      ELSE 'again' END;
      RETURN;
    END IF;
    PERFORM FROM dlock.spent x
      WHERE x.namespace = p_ns AND x.session = p_session AND x.attempt = p_attempt;
    IF FOUND THEN
      outcome := 'ended';
      RETURN;
    END IF;
    v_lives := false;
    IF l.held AND l.expires_at > clock_timestamp() THEN
      PERFORM FROM dlock.sessions x
        WHERE x.namespace = p_ns AND x.session = l.session AND x.incarnation = l.incarnation
          AND x.closed_at IS NULL;
      v_lives := FOUND;
    END IF;
    SELECT w.ticket INTO v_first FROM dlock.waiters w
     WHERE w.namespace = p_ns AND w.lock_key = p_key ORDER BY w.ticket LIMIT 1;

    IF l.attempt = p_attempt AND l.session = p_session THEN
      IF v_lives THEN
        outcome := 'granted';
        token := l.token;
        remaining_ms := dlock.left_ms_1(l.expires_at);
        RETURN;
      END IF;
      IF v_locked THEN
        -- What is answered as ended is made so, or a clock that steps back could revive it.
        UPDATE dlock.locks x SET held = false
         WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.held;
        outcome := 'ended';
        RETURN;
      END IF;
    ELSE
      place := NULL;
      IF v_first IS NOT NULL THEN
        SELECT w.ticket INTO place FROM dlock.waiters w
         WHERE w.namespace = p_ns AND w.lock_key = p_key
           AND w.incarnation = s.incarnation AND w.attempt = p_attempt;
      END IF;
      v_refused := v_lives AND (place IS NOT NULL OR NOT p_queue);
    END IF;
    EXIT WHEN v_locked OR v_refused;
    l := dlock.lock_row_1(p_ns, p_key);
    v_locked := true;
  END LOOP;

  IF NOT v_lives THEN
    IF v_first IS NOT NULL THEN
      head := dlock.head_1(p_ns, p_key, s.incarnation, p_attempt);
    END IF;
    IF head.ticket IS NULL OR head.ticket = place THEN
      minted := dlock.mint_1(greatest(l.token, l.floor));
      IF s.expires_at <= clock_timestamp() THEN
        outcome := 'again';
        RETURN;
      END IF;
      IF l.attempt IS NOT NULL THEN
        -- The attempt that this grant overwrites stays remembered.
        INSERT INTO dlock.spent (namespace, session, attempt, at)
        SELECT p_ns, l.session, l.attempt, clock_timestamp()
         WHERE EXISTS (SELECT FROM dlock.sessions x
                        WHERE x.namespace = p_ns AND x.session = l.session)
        ON CONFLICT DO NOTHING;
      END IF;
      token := minted.token;
      lifted := minted.lifted;
      UPDATE dlock.locks x
         SET token = insert_1.token, held = true, session = p_session,
             incarnation = s.incarnation, owner = s.owner, attempt = p_attempt,
             payload = p_payload, granted_at = clock_timestamp(), expires_at = s.expires_at
       WHERE x.namespace = p_ns AND x.lock_key = p_key;
      IF place IS NOT NULL THEN
        DELETE FROM dlock.waiters w
         WHERE w.namespace = p_ns AND w.lock_key = p_key AND w.ticket = place;
        place := NULL;
      END IF;
      outcome := 'granted';
      remaining_ms := dlock.left_ms_1(s.expires_at);
      RETURN;
    END IF;
    SELECT dlock.channel_1(x.instance), head.attempt INTO wake_channel, wake_attempt
      FROM dlock.sessions x WHERE x.namespace = p_ns AND x.session = head.session;
  END IF;

  IF p_queue AND place IS NULL THEN
    INSERT INTO dlock.waiters AS w
           (namespace, lock_key, ticket, session, incarnation, attempt, queued_at)
    SELECT p_ns, p_key,
           greatest(nextval('dlock.ticket_seq'),
                    (SELECT max(y.ticket) + 1 FROM dlock.waiters y
                      WHERE y.namespace = p_ns AND y.lock_key = p_key)),
           p_session, s.incarnation, p_attempt, clock_timestamp()
    RETURNING w.ticket INTO place;
  END IF;

  IF v_lives THEN
    h_token := l.token;
    h_session := l.session;
    h_owner := l.owner;
    h_payload := l.payload;
    h_granted_at_ms := dlock.unix_ms_1(l.granted_at);
    h_remaining_ms := dlock.left_ms_1(l.expires_at);
  END IF;
  IF place IS NULL THEN
    outcome := 'held';
  ELSE
    outcome := 'queued';
    ahead := dlock.ahead_1(p_ns, p_key, place);
  END IF;
END $f$;

-- outcome: granted; queued: the attempt has a place; held: by somebody, or for somebody in the
-- queue; ended: the attempt is over for good; session_gone; again: the session is just being
-- renewed, ask at once.
CREATE FUNCTION dlock.try_insert_1(
  p_ns text, p_key text, p_session bigint, p_attempt uuid, p_payload bytea, p_queue boolean,
  p_lock_ms int,
  OUT outcome text, OUT token bigint, OUT remaining_ms bigint, OUT lifted boolean,
  OUT place bigint, OUT ahead int,
  OUT h_token bigint, OUT h_session bigint, OUT h_owner text, OUT h_payload bytea,
  OUT h_granted_at_ms bigint, OUT h_remaining_ms bigint,
  OUT wake_channel text, OUT wake_attempt uuid)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_locked boolean;
  v_incarnation bigint;
  v_owner text;
  v_ends timestamptz;
  v_term bigint;
  v_retired bigint;
BEGIN
  -- Written out, being cheaper than a call.
  IF set_config('lock_timeout', p_lock_ms::text, true) IS NULL
     OR current_setting('transaction_isolation') <> 'read committed' OR pg_is_in_recovery()
     OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
  THEN
    PERFORM dlock.prelude_1(p_lock_ms);
  END IF;

  -- Mostly the key is free, and there is nothing else to think of. Where this finds something, all
  -- is asked on the whole way, which is a function of its own: what it declares costs as well.
  PERFORM FROM dlock.locks x
    WHERE x.namespace = p_ns AND x.lock_key = p_key AND NOT x.held FOR NO KEY UPDATE;
  v_locked := FOUND;
  IF v_locked THEN
    SELECT y.incarnation, y.owner, y.expires_at, m.term, m.retired
      INTO v_incarnation, v_owner, v_ends, v_term, v_retired
      FROM dlock.sessions y, dlock.meta m
     WHERE y.namespace = p_ns AND y.session = p_session
       AND y.closed_at IS NULL AND y.expires_at > clock_timestamp()
       AND m.one AND (NOT m.use_timeline OR m.timeline_seen = dlock.timeline_1())
       AND NOT EXISTS (SELECT FROM dlock.spent e
                        WHERE e.namespace = p_ns AND e.session = p_session
                          AND e.attempt = p_attempt)
       AND NOT EXISTS (SELECT FROM dlock.waiters w
                        WHERE w.namespace = p_ns AND w.lock_key = p_key);
    IF FOUND THEN
      UPDATE dlock.locks x
         SET token = dlock.draw_1(v_term, greatest(x.token, x.floor, v_retired)), held = true,
             session = p_session, incarnation = v_incarnation, owner = v_owner,
             attempt = p_attempt, payload = p_payload, granted_at = clock_timestamp(),
             expires_at = v_ends
       WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.attempt IS NULL
      RETURNING x.token INTO token;
      IF FOUND THEN
        outcome := 'granted';
        remaining_ms := dlock.left_ms_1(v_ends);
        lifted := token <> (v_term << 44) + currval('dlock.fencing_token_seq');
        RETURN;
      END IF;
    END IF;
  END IF;
  SELECT * INTO outcome, token, remaining_ms, lifted, place, ahead,
                h_token, h_session, h_owner, h_payload, h_granted_at_ms, h_remaining_ms,
                wake_channel, wake_attempt
    FROM dlock.insert_1(p_ns, p_key, p_session, p_attempt, p_payload, p_queue, v_locked);
END $f$;

-- NULL: gone for good. The session is renewed first, so that no grant outlives it.
CREATE FUNCTION dlock.extend_1(
  p_ns text, p_key text, p_token bigint, p_lock_ms int,
  OUT remaining_ms bigint, OUT session bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  l dlock.locks;
  v_ends timestamptz;
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  -- Without a lock: what is gone stays gone.
  SELECT * INTO l FROM dlock.locks x
   WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.token = p_token AND x.held;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM FROM dlock.sessions s
    WHERE s.namespace = p_ns AND s.session = l.session FOR NO KEY UPDATE;
  UPDATE dlock.sessions s
     SET expires_at = greatest(
           s.expires_at, clock_timestamp() + s.ttl_ms * interval '1 millisecond')
   WHERE s.namespace = p_ns AND s.session = l.session AND s.incarnation = l.incarnation
     AND s.closed_at IS NULL AND s.expires_at > clock_timestamp()
  RETURNING s.expires_at INTO v_ends;
  IF NOT FOUND THEN
    PERFORM dlock.end_expired_1(p_ns, l.session);
    RETURN;
  END IF;
  PERFORM FROM dlock.locks x
    WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.token = p_token FOR NO KEY UPDATE;
  UPDATE dlock.locks x SET expires_at = greatest(x.expires_at, v_ends)
   WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.token = p_token
     AND x.held AND x.expires_at > clock_timestamp()
  RETURNING dlock.left_ms_1(x.expires_at), x.session INTO remaining_ms, session;
  IF NOT FOUND THEN
    UPDATE dlock.locks x SET held = false
     WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.token = p_token
       AND x.held AND x.expires_at <= clock_timestamp();
  END IF;
END $f$;

-- p_settled: every request of the grant's attempt was answered. Then none can come late, and the
-- row forgets the attempt: the next grant has nothing to remember.
CREATE FUNCTION dlock.release_1(
  p_ns text, p_key text, p_token bigint, p_settled boolean, p_lock_ms int,
  OUT released boolean, OUT wake_channel text, OUT wake_attempt uuid)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_session bigint;
  v_incarnation bigint;
  v_ends timestamptz;
  v_waited_for boolean;
BEGIN
  IF set_config('lock_timeout', p_lock_ms::text, true) IS NULL
     OR current_setting('transaction_isolation') <> 'read committed' OR pg_is_in_recovery()
     OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
  THEN
    PERFORM dlock.prelude_1(p_lock_ms);
  END IF;
  -- It ends whatever this token still has; whether that was alive is asked under the row lock.
  UPDATE dlock.locks x
     SET held = false, attempt = CASE WHEN NOT p_settled THEN x.attempt END
   WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.token = p_token AND x.held
  RETURNING x.session, x.incarnation, x.expires_at INTO v_session, v_incarnation, v_ends;
  IF NOT FOUND THEN
    released := false;
    RETURN;
  END IF;
  SELECT v_ends > clock_timestamp() AND EXISTS (
           SELECT FROM dlock.sessions s
            WHERE s.namespace = p_ns AND s.session = v_session
              AND s.incarnation = v_incarnation AND s.closed_at IS NULL),
         EXISTS (SELECT FROM dlock.waiters w WHERE w.namespace = p_ns AND w.lock_key = p_key)
    INTO released, v_waited_for;
  IF v_waited_for THEN
    SELECT n.wake_channel, n.wake_attempt INTO wake_channel, wake_attempt
      FROM dlock.next_1(p_ns, p_key) n;
  END IF;
END $f$;

-- When it returns, the attempt holds nothing, queues for nothing, and never will: it and every
-- insert of that attempt pass through the same row lock, and what comes later finds it spent.
CREATE FUNCTION dlock.abandon_1(
  p_ns text, p_key text, p_session bigint, p_attempt uuid, p_lock_ms int,
  OUT wake_channel text, OUT wake_attempt uuid)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  PERFORM dlock.lock_row_1(p_ns, p_key);
  INSERT INTO dlock.spent (namespace, session, attempt, at)
  VALUES (p_ns, p_session, p_attempt, clock_timestamp())
  ON CONFLICT DO NOTHING;
  DELETE FROM dlock.waiters w
   WHERE w.namespace = p_ns AND w.lock_key = p_key
     AND w.session = p_session AND w.attempt = p_attempt;
  UPDATE dlock.locks x SET held = false, attempt = NULL
   WHERE x.namespace = p_ns AND x.lock_key = p_key
     AND x.session = p_session AND x.attempt = p_attempt;
  PERFORM FROM dlock.grants g WHERE g.namespace = p_ns AND g.lock_key = p_key;
  IF NOT FOUND THEN
    SELECT n.wake_channel, n.wake_attempt INTO wake_channel, wake_attempt
      FROM dlock.next_1(p_ns, p_key) n;
  END IF;
END $f$;
