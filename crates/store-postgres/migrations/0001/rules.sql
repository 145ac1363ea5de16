-- What every call demands of its surroundings, and what several calls need.

-- Refuses a transaction in which the functions would decide by an old snapshot, or a standby. Sets
-- how long the call waits for a row, and that its commit is flushed. What is stronger than that,
-- remote_apply, stays.
CREATE FUNCTION dlock.prelude_1(p_lock_ms int) RETURNS void
  LANGUAGE plpgsql VOLATILE AS $f$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'dlock: the transaction is %, not read committed',
      current_setting('transaction_isolation') USING ERRCODE = 'DL001';
  END IF;
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'dlock: this server is a standby' USING ERRCODE = '25006';
  END IF;
  PERFORM set_config('lock_timeout', p_lock_ms::text, true);
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $f$;

-- The channel on which the store object of a session listens.
CREATE FUNCTION dlock.channel_1(p_instance uuid) RETURNS text
  LANGUAGE sql IMMUTABLE AS $f$
  SELECT 'dlock_' || left(md5(p_instance::text), 16)
$f$;

CREATE FUNCTION dlock.unix_ms_1(p_at timestamptz) RETURNS bigint
  LANGUAGE sql STABLE AS $f$
  SELECT floor(extract(epoch FROM p_at) * 1000)::bigint
$f$;

CREATE FUNCTION dlock.left_ms_1(p_until timestamptz) RETURNS bigint
  LANGUAGE sql VOLATILE AS $f$
  SELECT floor(extract(epoch FROM p_until - clock_timestamp()) * 1000)::bigint
$f$;
