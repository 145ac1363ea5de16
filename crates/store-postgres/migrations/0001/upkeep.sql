-- What runs beside the locks: the check of a new connection, the reaper, recovery, diagnosis.

-- For every new connection, before anything else. problem: why this database cannot be used.
CREATE FUNCTION dlock.attach_1(
  OUT format int, OUT in_recovery boolean, OUT problem text, OUT warning text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
DECLARE
  m dlock.meta;
  v_sysid bigint;
BEGIN
  in_recovery := pg_is_in_recovery();
  SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one;
  format := m.format;
  IF current_setting('server_encoding') <> 'UTF8' THEN
    problem := 'the encoding of the database is not UTF8';
    RETURN;
  END IF;
  PERFORM FROM pg_sequence q
    WHERE q.seqrelid = 'dlock.fencing_token_seq'::regclass AND q.seqtypid = 'bigint'::regtype
      AND q.seqincrement = 1 AND q.seqcache = 1 AND NOT q.seqcycle
      AND q.seqmin = 1 AND q.seqmax = 17592186044415;
  IF NOT FOUND THEN
    problem := 'dlock.fencing_token_seq was altered: tokens would not rise';
    RETURN;
  END IF;
  PERFORM FROM pg_class c
    WHERE c.relnamespace = 'dlock'::regnamespace AND c.relkind IN ('r', 'S')
      AND c.relpersistence <> 'p';
  IF FOUND THEN
    problem := 'a table or sequence of dlock is unlogged: a crash would empty it';
    RETURN;
  END IF;
  IF NOT m.use_timeline THEN
    warning := 'the timeline cannot be read: after a promotion the term rises by a recovery only';
  ELSIF EXISTS (SELECT FROM pg_index i
                 WHERE i.indrelid = 'dlock.locks'::regclass AND NOT i.indisprimary) THEN
    warning := 'dlock.locks has a further index: every renewal writes to it';
  END IF;
  IF in_recovery THEN
    RETURN;
  END IF;
  -- Dumped and restored, upgraded or copied: counter and timeline began anew.
  SELECT c.system_identifier INTO v_sysid FROM pg_control_system() c;
  IF (v_sysid, dlock.database_1()) <> (m.sysid, m.database) THEN
    SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one FOR NO KEY UPDATE;
    IF (v_sysid, dlock.database_1()) <> (m.sysid, m.database) THEN
      UPDATE dlock.meta x SET sysid = v_sysid, database = dlock.database_1() WHERE x.one;
      IF m.use_timeline THEN
        PERFORM dlock.raise_term_1(m.term + dlock.timeline_1(), dlock.timeline_1());
      ELSE
        PERFORM dlock.raise_term_1(m.term + 1, m.timeline_seen);
      END IF;
    END IF;
  END IF;
END $f$;

-- Clears at most p_limit dead sessions, places and grants of a namespace, and forgets as many old
-- things of each kind. Looks at p_limit lock rows after p_after; next_key continues, NULL: nothing
-- is left.
CREATE FUNCTION dlock.reap_1(
  p_ns text, p_limit int, p_after text, p_lock_ms int, OUT cleared int, OUT next_key text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  m dlock.meta;
  v_count int;
  v_left int := p_limit;
  v_forgotten int := 0;
  v_rows dlock.locks[];
  v_retired bigint;
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one;

  WITH dead AS MATERIALIZED (
    SELECT s.session FROM dlock.sessions s
     WHERE s.namespace = p_ns AND s.closed_at IS NULL AND s.expires_at <= clock_timestamp()
     LIMIT v_left FOR NO KEY UPDATE SKIP LOCKED)
  UPDATE dlock.sessions s SET closed_at = clock_timestamp() FROM dead
   WHERE s.namespace = p_ns AND s.session = dead.session
     AND s.closed_at IS NULL AND s.expires_at <= clock_timestamp();
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_left := v_left - v_count;

  -- A place never changes its session, and what is closed stays closed: this may be judged as it
  -- is locked.
  WITH dead AS MATERIALIZED (
    SELECT w.lock_key, w.ticket FROM dlock.waiters w
     WHERE w.namespace = p_ns AND NOT EXISTS (
       SELECT FROM dlock.sessions s
        WHERE s.namespace = p_ns AND s.session = w.session
          AND s.incarnation = w.incarnation AND s.closed_at IS NULL)
     LIMIT v_left FOR UPDATE OF w SKIP LOCKED)
  DELETE FROM dlock.waiters w USING dead
   WHERE w.namespace = p_ns AND w.lock_key = dead.lock_key AND w.ticket = dead.ticket;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_left := v_left - v_count;

  WITH old AS MATERIALIZED (
    SELECT s.session FROM dlock.sessions s
     WHERE s.namespace = p_ns AND s.closed_at < clock_timestamp() - m.tombstone
     LIMIT p_limit FOR UPDATE SKIP LOCKED)
  DELETE FROM dlock.sessions s USING old
   WHERE s.namespace = p_ns AND s.session = old.session;
  GET DIAGNOSTICS v_forgotten = ROW_COUNT;
  WITH old AS MATERIALIZED (
    SELECT e.session, e.attempt FROM dlock.spent e
     WHERE e.namespace = p_ns AND e.at < clock_timestamp() - m.attempt_memory
     LIMIT p_limit FOR UPDATE SKIP LOCKED)
  DELETE FROM dlock.spent e USING old
   WHERE e.namespace = p_ns AND e.session = old.session AND e.attempt = old.attempt;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_forgotten := greatest(v_forgotten, v_count);

  IF v_left = 0 THEN
    cleared := p_limit;
    next_key := coalesce(p_after, '');
    RETURN;
  END IF;
  SELECT CASE WHEN count(*) = v_left THEN max(y.lock_key) END INTO next_key
    FROM (SELECT x.lock_key FROM dlock.locks x
           WHERE x.namespace = p_ns AND x.lock_key > coalesce(p_after, '')
           ORDER BY x.lock_key LIMIT v_left) y;
  v_rows := ARRAY(
    SELECT x FROM dlock.locks x
     WHERE x.namespace = p_ns AND x.lock_key > coalesce(p_after, '')
       AND (next_key IS NULL OR x.lock_key <= next_key)
       AND CASE WHEN x.held
             THEN NOT EXISTS (SELECT FROM dlock.grants g
                               WHERE g.namespace = p_ns AND g.lock_key = x.lock_key)
             ELSE x.floor IS NULL AND x.expires_at < clock_timestamp() - m.idle END
       FOR UPDATE OF x SKIP LOCKED);
  -- Asked in a statement of its own, under the row locks: one that locks the rows would ask for
  -- sessions in a snapshot that is older than the rows, and end the grant of a session that it does
  -- not see yet.
  UPDATE dlock.locks x SET held = false FROM unnest(v_rows) k
   WHERE x.namespace = p_ns AND x.lock_key = k.lock_key AND x.held
     AND NOT EXISTS (SELECT FROM dlock.grants g
                      WHERE g.namespace = p_ns AND g.lock_key = k.lock_key);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_left := v_left - v_count;

  WITH forgotten AS (
    DELETE FROM dlock.locks x USING unnest(v_rows) k
     WHERE x.namespace = p_ns AND x.lock_key = k.lock_key AND NOT k.held
       AND NOT EXISTS (SELECT FROM dlock.waiters w
                        WHERE w.namespace = p_ns AND w.lock_key = k.lock_key)
    RETURNING x.session, x.attempt, x.token),
  remembered AS (
    INSERT INTO dlock.spent (namespace, session, attempt, at)
    SELECT p_ns, f.session, f.attempt, clock_timestamp() FROM forgotten f
     WHERE f.attempt IS NOT NULL
       AND EXISTS (SELECT FROM dlock.sessions s
                    WHERE s.namespace = p_ns AND s.session = f.session)
    ON CONFLICT DO NOTHING)
  SELECT max(f.token) INTO v_retired FROM forgotten f;
  IF v_retired IS NOT NULL THEN
    UPDATE dlock.meta x SET retired = v_retired WHERE x.one AND x.retired < v_retired;
  END IF;
  IF v_forgotten = p_limit THEN
    next_key := coalesce(next_key, p_after, '');
  END IF;
  cleared := p_limit - v_left;
END $f$;

-- For an operator, after the data went back unseen: a copied data folder, a disk snapshot. Ends all
-- of the namespace, keeps it closed for the hold-off and raises the term, above p_above as well.
-- The same id again goes on with what it began.
CREATE FUNCTION dlock.recover_1(
  p_ns text, p_id uuid, p_above bigint, p_hold_off_ms bigint, p_lock_ms int,
  OUT term bigint, OUT closed_ms bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  m dlock.meta;
  r dlock.recoveries;
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  -- Those who open sessions share it: none slips in unseen.
  PERFORM pg_advisory_xact_lock(1684828003, hashtext(p_ns));
  SELECT * INTO r FROM dlock.recoveries x WHERE x.namespace = p_ns AND x.id = p_id;
  IF FOUND THEN
    term := r.term;
    closed_ms := greatest(dlock.left_ms_1(r.opens_at), 0);
    RETURN;
  END IF;
  UPDATE dlock.sessions s SET closed_at = clock_timestamp()
   WHERE s.namespace = p_ns AND s.closed_at IS NULL;
  PERFORM dlock.follow_timeline_1();
  SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one;
  term := greatest(m.term + 1, (p_above >> 44) + 1);
  PERFORM dlock.raise_term_1(term, m.timeline_seen);
  INSERT INTO dlock.recoveries AS x (namespace, id, above, term, at, opens_at)
  VALUES (p_ns, p_id, p_above, recover_1.term, clock_timestamp(),
          clock_timestamp() + p_hold_off_ms * interval '1 millisecond')
  RETURNING greatest(dlock.left_ms_1(x.opens_at), 0) INTO closed_ms;
END $f$;
