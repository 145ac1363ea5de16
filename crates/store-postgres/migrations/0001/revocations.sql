-- Ends the grant of a key from outside, raises the floor and leaves a record, in one step.

-- p_target: the token of the grant that is meant; NULL: whoever holds it, and a free key as well.
-- The same id again is answered with the record.
CREATE FUNCTION dlock.revoke_1(
  p_ns text, p_key text, p_target bigint, p_id uuid, p_by text, p_reason text, p_lock_ms int,
  OUT revoked boolean, OUT previous_token bigint, OUT previous_owner text,
  OUT new_token_floor bigint, OUT lifted boolean, OUT wake_channel text, OUT wake_attempt uuid)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  l dlock.locks;
  r dlock.revocations;
  minted record;
BEGIN
  PERFORM dlock.prelude_1(p_lock_ms);
  SELECT * INTO l FROM dlock.locks x
   WHERE x.namespace = p_ns AND x.lock_key = p_key FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    IF p_target IS NOT NULL THEN
      revoked := false;
      RETURN;
    END IF;
    l := dlock.lock_row_1(p_ns, p_key);
  END IF;
  SELECT * INTO r FROM dlock.revocations x
   WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.id = p_id;
  IF FOUND THEN
    revoked := r.revoked;
    previous_token := r.previous_token;
    previous_owner := r.previous_owner;
    new_token_floor := r.new_token_floor;
    RETURN;
  END IF;
  revoked := EXISTS (SELECT FROM dlock.grants g WHERE g.namespace = p_ns AND g.lock_key = p_key);
  IF p_target IS NOT NULL AND NOT (revoked AND l.token = p_target) THEN
    revoked := false;
    new_token_floor := l.floor;
    RETURN;
  END IF;
  IF revoked THEN
    previous_token := l.token;
    previous_owner := l.owner;
  END IF;
  minted := dlock.mint_1(greatest(l.token, l.floor));
  new_token_floor := minted.token;
  lifted := minted.lifted;
  UPDATE dlock.locks x SET floor = minted.token, held = false
   WHERE x.namespace = p_ns AND x.lock_key = p_key;
  INSERT INTO dlock.revocations
         (namespace, lock_key, serial, id, by, reason, at,
          revoked, previous_token, previous_owner, new_token_floor)
  SELECT p_ns, p_key, coalesce(max(x.serial), 0) + 1, p_id, p_by, p_reason, clock_timestamp(),
         revoke_1.revoked, revoke_1.previous_token, revoke_1.previous_owner, minted.token
    FROM dlock.revocations x WHERE x.namespace = p_ns AND x.lock_key = p_key;
  SELECT n.wake_channel, n.wake_attempt INTO wake_channel, wake_attempt
    FROM dlock.next_1(p_ns, p_key) n;
END $f$;

CREATE FUNCTION dlock.revocations_1(p_ns text, p_key text, p_below bigint, p_limit int)
  RETURNS TABLE (id uuid, serial bigint, by text, reason text, at_ms bigint, revoked boolean,
                 previous_token bigint, previous_owner text, new_token_floor bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $f$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT r.id, r.serial, r.by::text, r.reason::text, dlock.unix_ms_1(r.at), r.revoked,
           r.previous_token, r.previous_owner::text, r.new_token_floor
      FROM dlock.revocations r
     WHERE r.namespace = p_ns AND r.lock_key = p_key
       AND r.serial < coalesce(p_below, 9223372036854775807)
     ORDER BY r.serial DESC LIMIT p_limit;
END $f$;
