-- The queue of a key. Tickets are drawn, and the first in line is chosen, under the row lock of the
-- key.

-- The first in line of a key that is free. Clears from the front the dead, and those who were
-- called and did not come: the attempts of these are over. Stops at the caller's own place.
-- Whoever it chooses counts as called from now on.
CREATE FUNCTION dlock.head_1(p_ns text, p_key text, p_incarnation bigint, p_attempt uuid)
  RETURNS dlock.waiters
  LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
  w dlock.waiters;
  s dlock.sessions;
  v_claim interval;
BEGIN
  LOOP
    SELECT * INTO w FROM dlock.waiters x
     WHERE x.namespace = p_ns AND x.lock_key = p_key ORDER BY x.ticket LIMIT 1;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
    IF w.incarnation = p_incarnation AND w.attempt = p_attempt THEN
      RETURN w;
    END IF;
    SELECT * INTO s FROM dlock.sessions x
     WHERE x.namespace = p_ns AND x.session = w.session AND x.incarnation = w.incarnation;
    IF FOUND AND s.closed_at IS NULL
       AND (s.expires_at > clock_timestamp() OR NOT dlock.end_expired_1(p_ns, w.session))
    THEN
      -- A call that lies ahead is of a clock that has stepped back since.
      IF w.called_at IS NULL OR w.called_at > clock_timestamp() THEN
        UPDATE dlock.waiters x SET called_at = clock_timestamp()
         WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.ticket = w.ticket;
        RETURN w;
      END IF;
      v_claim := coalesce(v_claim, (SELECT m.claim FROM dlock.meta m WHERE m.one));
      IF w.called_at + v_claim > clock_timestamp() THEN
        RETURN w;
      END IF;
      INSERT INTO dlock.spent (namespace, session, attempt, at)
      VALUES (p_ns, w.session, w.attempt, clock_timestamp())
      ON CONFLICT DO NOTHING;
    END IF;
    DELETE FROM dlock.waiters x
     WHERE x.namespace = p_ns AND x.lock_key = p_key AND x.ticket = w.ticket;
  END LOOP;
END $f$;

-- Whom to wake for a key that was just freed.
CREATE FUNCTION dlock.next_1(p_ns text, p_key text, OUT wake_channel text, OUT wake_attempt uuid)
  LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
  head dlock.waiters := dlock.head_1(p_ns, p_key, NULL, NULL);
BEGIN
  SELECT dlock.channel_1(s.instance), head.attempt INTO wake_channel, wake_attempt
    FROM dlock.sessions s WHERE s.namespace = p_ns AND s.session = head.session;
END $f$;

-- How many living places stand before this one.
CREATE FUNCTION dlock.ahead_1(p_ns text, p_key text, p_place bigint) RETURNS int
  LANGUAGE sql STABLE AS $f$
  SELECT count(*)::int FROM dlock.places p
   WHERE p.namespace = p_ns AND p.lock_key = p_key AND p.ticket < p_place
$f$;
