-- Fencing tokens: term * 2^44 + counter. The term is that of the installation, plus one for each
-- timeline of the server and each recovery since.

CREATE FUNCTION dlock.timeline_1() RETURNS int
  LANGUAGE sql VOLATILE AS $f$
  SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
$f$;

-- Changes when the data is dumped and restored, within its cluster too.
CREATE FUNCTION dlock.database_1() RETURNS oid
  LANGUAGE sql STABLE AS $f$
  SELECT d.oid FROM pg_database d WHERE d.datname = current_database()
$f$;

DO $f$
BEGIN
  INSERT INTO dlock.meta (sysid, database, use_timeline, timeline_seen, term)
  SELECT c.system_identifier, dlock.database_1(), true, dlock.timeline_1(), dlock.timeline_1() - 1
    FROM pg_control_system() c;
EXCEPTION WHEN insufficient_privilege THEN
  -- Some managed services refuse it to everybody.
  INSERT INTO dlock.meta (sysid, database, use_timeline, timeline_seen, term)
  SELECT c.system_identifier, dlock.database_1(), false, 1, 0 FROM pg_control_system() c;
END $f$;

-- Two standbys of one parent that are promoted one after the other can get the same timeline, and
-- so the same term. So the counter jumps as well, to 4096 for each second since 2025: the later
-- promotion is ahead as long as the earlier one granted fewer than that.
CREATE FUNCTION dlock.stamp_1() RETURNS void
  LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
  stamp bigint := floor(4096 * (extract(epoch FROM clock_timestamp()) - 1735689600));
BEGIN
  PERFORM setval('dlock.fencing_token_seq', least(stamp, 17592186044415))
     FROM dlock.fencing_token_seq q WHERE q.last_value < stamp;
END $f$;

-- A schema that was dropped and made anew begins above what the old one handed out.
DO $f$
BEGIN
  PERFORM dlock.stamp_1();
END $f$;

CREATE FUNCTION dlock.raise_term_1(p_term bigint, p_timeline int) RETURNS void
  LANGUAGE plpgsql VOLATILE AS $f$
BEGIN
  IF p_term > 524287 THEN
    RAISE EXCEPTION 'dlock: the term % is past its end', p_term USING ERRCODE = '2200H';
  END IF;
  UPDATE dlock.meta m SET term = p_term, timeline_seen = p_timeline WHERE m.one;
  PERFORM dlock.stamp_1();
END $f$;

-- The first minting on a new timeline: after a promotion, or where the data has moved to another
-- cluster. Whoever comes beside it waits here.
CREATE FUNCTION dlock.follow_timeline_1() RETURNS void
  LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
  m dlock.meta;
  v_timeline int;
BEGIN
  SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one FOR NO KEY UPDATE;
  IF m.use_timeline THEN
    v_timeline := dlock.timeline_1();
    IF v_timeline > m.timeline_seen THEN
      PERFORM dlock.raise_term_1(m.term + v_timeline - m.timeline_seen, v_timeline);
    ELSIF v_timeline < m.timeline_seen THEN
      -- Timelines began anew; so high may they have been counted already.
      PERFORM dlock.raise_term_1(m.term + v_timeline, v_timeline);
    END IF;
  END IF;
END $f$;

-- The only place that makes tokens. Whoever asks holds the row lock of the key, or an earlier
-- number could be granted later. p_above: the highest that this key, or one forgotten, has had. If
-- the token is not that of the counter, this one had gone back and was overruled.
CREATE FUNCTION dlock.draw_1(p_term bigint, p_above bigint) RETURNS bigint
  LANGUAGE sql VOLATILE AS $f$
  SELECT greatest((p_term << 44) + nextval('dlock.fencing_token_seq'), p_above + 1)
$f$;

CREATE FUNCTION dlock.mint_1(p_above bigint, OUT token bigint, OUT lifted boolean)
  LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
  m dlock.meta;
BEGIN
  SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one;
  IF m.use_timeline AND m.timeline_seen <> dlock.timeline_1() THEN
    PERFORM dlock.follow_timeline_1();
    SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one;
  END IF;
  token := dlock.draw_1(m.term, greatest(p_above, m.retired));
  lifted := token <> (m.term << 44) + currval('dlock.fencing_token_seq');
END $f$;
