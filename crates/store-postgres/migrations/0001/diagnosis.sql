-- What an operator should know. Only reads; what it may not see it does not report.

-- severity: note, warning or critical.
CREATE FUNCTION dlock.diagnose_1()
  RETURNS TABLE (id text, severity text, what text, what_to_do text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET jit = off AS $f$
#variable_conflict use_column
DECLARE
  m dlock.meta;
  v_counter bigint;
  v_highest bigint;
BEGIN
  SELECT * INTO STRICT m FROM dlock.meta x WHERE x.one;
  SELECT q.last_value INTO v_counter FROM dlock.fencing_token_seq q;
  SELECT max(greatest(l.token, l.floor)) INTO v_highest FROM dlock.locks l;

  RETURN QUERY
    SELECT 'sequence_altered', 'critical',
           'dlock.fencing_token_seq was altered: tokens may not rise',
           'ALTER SEQUENCE dlock.fencing_token_seq AS bigint INCREMENT 1 MINVALUE 1 '
           'MAXVALUE 17592186044415 CACHE 1 NO CYCLE'
     WHERE NOT EXISTS (
       SELECT FROM pg_sequence q
        WHERE q.seqrelid = 'dlock.fencing_token_seq'::regclass
          AND q.seqtypid = 'bigint'::regtype AND q.seqincrement = 1 AND q.seqcache = 1
          AND NOT q.seqcycle AND q.seqmin = 1 AND q.seqmax = 17592186044415);
  RETURN QUERY
    SELECT 'unlogged', 'critical',
           format('%s is unlogged: a crash would empty it', c.oid::regclass),
           format('ALTER %s %s SET LOGGED',
                  CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass)
      FROM pg_class c
     WHERE c.relnamespace = 'dlock'::regnamespace AND c.relkind IN ('r', 'S')
       AND c.relpersistence <> 'p';
  RETURN QUERY
    SELECT 'counter_behind', 'critical',
           format('the counter stands at %s of term %s, below the token %s', v_counter, m.term,
                  v_highest),
           'find out who set the sequence back or restored a copy, and recover every namespace'
     WHERE v_highest > (m.term << 44) + v_counter;
  RETURN QUERY
    SELECT 'counter_near_end', 'warning',
           format('the counter stands at %s of 17592186044415', v_counter),
           'recover a namespace: the term rises; then set the sequence back to 1'
     WHERE v_counter > 16000000000000;
  RETURN QUERY
    SELECT 'term_near_end', 'warning', format('the term is %s of 524287', m.term),
           'find out what raises it so often'
     WHERE m.term > 500000;
  RETURN QUERY
    SELECT 'namespace_closed', 'warning',
           format('the namespace %s is closed for recovery until %s', r.namespace, r.opens_at),
           'wait, or repeat the recovery with its id until it is over'
      FROM dlock.recoveries r WHERE r.opens_at > clock_timestamp();
  RETURN QUERY
    SELECT 'timeline_unreadable', 'warning',
           'the owner of dlock may not read the timeline: a promotion does not raise the term',
           'recover every namespace after a promotion that may have lost writes'
     WHERE NOT m.use_timeline;
  RETURN QUERY
    SELECT 'further_index', 'warning',
           format('%s: an index on a column that changes makes every renewal write to it',
                  i.indexrelid::regclass),
           format('DROP INDEX %s', i.indexrelid::regclass)
      FROM pg_index i
     WHERE i.indrelid IN ('dlock.locks'::regclass, 'dlock.sessions'::regclass)
       AND NOT i.indisprimary;
  RETURN QUERY
    SELECT 'unsafe_setting', 'warning',
           format('%s is off: a crash may lose grants and hand out their tokens again', s.name),
           format('set %s = on', s.name)
      FROM pg_settings s
     WHERE s.name IN ('fsync', 'full_page_writes') AND s.setting = 'off';
  RETURN QUERY
    SELECT 'autovacuum_off', 'warning', 'autovacuum is off: the tables grow without end',
           'set autovacuum = on'
     WHERE current_setting('autovacuum') = 'off';
  RETURN QUERY
    SELECT 'old_transaction', 'warning',
           format('%s transactions have been open for more than 5 minutes: renewals bloat',
                  count(*)),
           'find them in pg_stat_activity by xact_start'
      FROM pg_stat_activity a
     WHERE a.datname = current_database() AND a.backend_type = 'client backend'
       AND a.xact_start < clock_timestamp() - interval '5 minutes'
    HAVING count(*) > 0;
  RETURN QUERY
    SELECT 'idle_slot', 'warning',
           format('the replication slot %s is not in use and holds back the cleaning up',
                  s.slot_name),
           'start its reader or drop it'
      FROM pg_replication_slots s
     WHERE NOT s.active AND (s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL);
  RETURN QUERY
    SELECT 'wraparound_near', 'critical',
           format('%s transactions since the last freeze', age(d.datfrozenxid)),
           'VACUUM FREEZE the oldest tables, and find out why autovacuum did not'
      FROM pg_database d
     WHERE d.datname = current_database() AND age(d.datfrozenxid) > 1500000000;
  RETURN QUERY
    SELECT 'not_reaped', 'warning',
           format('%s sessions of namespace %s ended long ago and were not cleared', count(*),
                  s.namespace),
           'run fencelock reap from time to time'
      FROM dlock.sessions s
     WHERE coalesce(s.closed_at, s.expires_at) < clock_timestamp() - 24 * m.tombstone
     GROUP BY s.namespace;
  RETURN QUERY
    SELECT 'asynchronous_standby', 'note',
           'a standby follows asynchronously: a fail-over to it may lose the newest grants',
           'set synchronous_standby_names, or rely on the tokens'
     WHERE EXISTS (SELECT FROM pg_stat_replication)
       AND current_setting('synchronous_standby_names') = '';
  RETURN QUERY
    SELECT 'notify_queue_full', 'warning',
           format('the queue of notifications is filled to %s %%',
                  round(pg_notification_queue_usage()::numeric * 100)),
           'find the listener that sits in a transaction'
     WHERE pg_notification_queue_usage() > 0.5;
END $f$;
