-- What may be asked of a primary or a standby. Nothing here is authoritative, and nothing writes.

CREATE FUNCTION dlock.read_1(
  p_ns text, p_key text,
  OUT floor bigint, OUT waiter_count int, OUT token bigint, OUT session bigint, OUT owner text,
  OUT payload bytea, OUT granted_at_ms bigint, OUT remaining_ms bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
BEGIN
  SELECT g.token, g.session, g.owner, g.payload, dlock.unix_ms_1(g.granted_at),
         dlock.left_ms_1(g.expires_at)
    INTO token, session, owner, payload, granted_at_ms, remaining_ms
    FROM dlock.grants g WHERE g.namespace = p_ns AND g.lock_key = p_key;
  SELECT l.floor INTO floor
    FROM dlock.locks l WHERE l.namespace = p_ns AND l.lock_key = p_key;
  SELECT count(*) INTO waiter_count
    FROM dlock.places p WHERE p.namespace = p_ns AND p.lock_key = p_key;
END $f$;

-- A page is a window of p_limit rows. Of these the held ones are told, and the last one always when
-- the window was full: there may be more behind it, and it is the cursor.
CREATE FUNCTION dlock.list_1(p_ns text, p_prefix text, p_after text, p_limit int)
  RETURNS TABLE (lock_key text, held boolean, token bigint, session bigint, owner text,
                 payload bytea, granted_at_ms bigint, remaining_ms bigint, floor bigint,
                 more boolean)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  -- Above every key with the prefix, and below every other key above the prefix: keys are at most
  -- 512 bytes of UTF-8, and no four of them are above those of the last code point.
  v_end text := p_prefix || repeat(chr(1114111), 129);
BEGIN
  RETURN QUERY
    WITH page AS MATERIALIZED (
      SELECT l.lock_key, l.floor, row_number() OVER (ORDER BY l.lock_key) = p_limit AS full_page
        FROM dlock.locks l
       WHERE l.namespace = p_ns AND l.lock_key >= p_prefix AND l.lock_key < v_end
         AND l.lock_key > coalesce(p_after, '')
       ORDER BY l.lock_key LIMIT p_limit)
    SELECT p.lock_key::text, g.lock_key IS NOT NULL, g.token, g.session, g.owner::text,
           g.payload::bytea,
           dlock.unix_ms_1(g.granted_at), dlock.left_ms_1(g.expires_at), p.floor, p.full_page
      FROM page p
      LEFT JOIN dlock.grants g ON g.namespace = p_ns AND g.lock_key = p.lock_key
     WHERE g.lock_key IS NOT NULL OR p.full_page
     ORDER BY p.lock_key;
END $f$;

CREATE FUNCTION dlock.sessions_1(p_ns text, p_after bigint, p_limit int)
  RETURNS TABLE (session bigint, owner text, ttl_ms bigint, opened_at_ms bigint,
                 remaining_ms bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT s.session, s.owner::text, s.ttl_ms::bigint, dlock.unix_ms_1(s.opened_at),
           dlock.left_ms_1(s.expires_at)
      FROM dlock.sessions s
     WHERE s.namespace = p_ns AND s.session > coalesce(p_after, 0)
       AND s.closed_at IS NULL AND s.expires_at > clock_timestamp()
     ORDER BY s.session LIMIT p_limit;
END $f$;

CREATE FUNCTION dlock.waiters_1(p_ns text, p_key text)
  RETURNS TABLE (attempt uuid, session bigint, owner text, place bigint, ahead int,
                 queued_at_ms bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT p.attempt, p.session, p.owner::text, p.ticket,
           (row_number() OVER (ORDER BY p.ticket) - 1)::int, dlock.unix_ms_1(p.queued_at)
      FROM dlock.places p
     WHERE p.namespace = p_ns AND p.lock_key = p_key
     ORDER BY p.ticket;
END $f$;

-- What a waiter has to know to decide whether to ask again.
CREATE FUNCTION dlock.look_1(
  p_ns text, p_key text, p_session bigint, p_attempt uuid,
  OUT session_stands boolean, OUT place bigint, OUT first boolean, OUT anybody boolean,
  OUT token bigint, OUT attempt_holds boolean, OUT remaining_ms bigint, OUT head_attempt uuid)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  v_head bigint;
BEGIN
  session_stands := EXISTS (
    SELECT FROM dlock.sessions s
     WHERE s.namespace = p_ns AND s.session = p_session
       AND s.closed_at IS NULL AND s.expires_at > clock_timestamp());
  SELECT g.token, g.session = p_session AND g.attempt = p_attempt, dlock.left_ms_1(g.expires_at)
    INTO token, attempt_holds, remaining_ms
    FROM dlock.grants g WHERE g.namespace = p_ns AND g.lock_key = p_key;
  attempt_holds := coalesce(attempt_holds, false);
  SELECT p.attempt, p.ticket INTO head_attempt, v_head
    FROM dlock.places p
   WHERE p.namespace = p_ns AND p.lock_key = p_key ORDER BY p.ticket LIMIT 1;
  anybody := FOUND;
  SELECT p.ticket INTO place
    FROM dlock.places p
   WHERE p.namespace = p_ns AND p.lock_key = p_key
     AND p.session = p_session AND p.attempt = p_attempt;
  first := coalesce(place = v_head, false);
END $f$;
