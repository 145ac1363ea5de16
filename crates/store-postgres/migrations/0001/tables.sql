-- Sequences, tables and the one definition of a living grant.

CREATE SCHEMA IF NOT EXISTS dlock;
REVOKE ALL ON SCHEMA dlock FROM PUBLIC;
COMMENT ON SCHEMA dlock IS
  'Distributed locks. Change nothing here by hand: revoke, recover and reap have functions.';

-- The counter of a token has 44 bits. Past them it would run into the term: an error, never a wrap.
CREATE SEQUENCE dlock.fencing_token_seq AS bigint
  MINVALUE 1 MAXVALUE 17592186044415 CACHE 1 NO CYCLE;
COMMENT ON SEQUENCE dlock.fencing_token_seq IS
  'Counter of the fencing tokens. CACHE must stay 1: cached numbers would be handed out of order.';

CREATE SEQUENCE dlock.incarnation_seq AS bigint;
COMMENT ON SEQUENCE dlock.incarnation_seq IS
  'Tells apart two sessions of one id. Only that a number never repeats matters.';

CREATE SEQUENCE dlock.ticket_seq AS bigint CACHE 1;
COMMENT ON SEQUENCE dlock.ticket_seq IS 'Order of the places in the queues.';

CREATE TABLE dlock.meta (
  one            boolean  PRIMARY KEY DEFAULT true CHECK (one),
  format         int      NOT NULL DEFAULT 1,
  sysid          bigint   NOT NULL,
  database       oid      NOT NULL,
  use_timeline   boolean  NOT NULL,
  term           bigint   NOT NULL CHECK (term BETWEEN 0 AND 524287),
  timeline_seen  int      NOT NULL,
  retired        bigint   NOT NULL DEFAULT 0,
  claim          interval NOT NULL DEFAULT '12 seconds',
  attempt_memory interval NOT NULL DEFAULT '15 minutes',
  tombstone      interval NOT NULL DEFAULT '1 hour',
  idle           interval NOT NULL DEFAULT '7 days'
);
COMMENT ON TABLE dlock.meta IS 'One row: what holds for the whole schema.';
COMMENT ON COLUMN dlock.meta.format IS 'Version of what is stored here.';
COMMENT ON COLUMN dlock.meta.sysid IS 'System identifier of the cluster that last used these rows.';
COMMENT ON COLUMN dlock.meta.database IS 'Database of that cluster that last used these rows.';
COMMENT ON COLUMN dlock.meta.use_timeline IS
  'False where the owner may not read the timeline: then only a recovery raises the term.';
COMMENT ON COLUMN dlock.meta.term IS
  'Rises with the timeline, by a recovery, and when the data has moved to another database or cluster.';
COMMENT ON COLUMN dlock.meta.timeline_seen IS 'The timeline of the server in this term.';
COMMENT ON COLUMN dlock.meta.retired IS
  'The highest token of any deleted lock row: none at or below it is handed out again.';
COMMENT ON COLUMN dlock.meta.claim IS
  'How long the first in line may take to come for a free lock before it loses its place.';
COMMENT ON COLUMN dlock.meta.attempt_memory IS 'How long an attempt that ended is remembered.';
COMMENT ON COLUMN dlock.meta.tombstone IS 'How long a closed session is remembered.';
COMMENT ON COLUMN dlock.meta.idle IS 'How long the row of a free key is kept.';

-- Limits as domains and not as checks of the tables: a domain is checked where a value comes in, a
-- check of the table at every update of the row. COLLATE "C": keys are compared byte for byte.
CREATE DOMAIN dlock.namespace AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 64);
CREATE DOMAIN dlock.lock_key AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 512);
CREATE DOMAIN dlock.owner AS text COLLATE "C" CHECK (octet_length(VALUE) <= 256);
CREATE DOMAIN dlock.reason AS text COLLATE "C" CHECK (octet_length(VALUE) <= 1024);
CREATE DOMAIN dlock.ttl_ms AS bigint CHECK (VALUE BETWEEN 1000 AND 86400000);
CREATE DOMAIN dlock.payload AS bytea CHECK (octet_length(VALUE) <= 4096);

CREATE TABLE dlock.sessions (
  namespace   dlock.namespace NOT NULL,
  session     bigint NOT NULL,
  incarnation bigint NOT NULL DEFAULT nextval('dlock.incarnation_seq'),
  instance    uuid,
  owner       dlock.owner NOT NULL,
  ttl_ms      dlock.ttl_ms NOT NULL,
  opened_at   timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL,
  closed_at   timestamptz,
  PRIMARY KEY (namespace, session)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        vacuum_truncate = false);
COMMENT ON TABLE dlock.sessions IS
  'A client''s leases. What a session holds lives only while its row stands here unclosed.';
COMMENT ON COLUMN dlock.sessions.session IS 'Drawn by the client, never used again.';
COMMENT ON COLUMN dlock.sessions.incarnation IS
  'Drawn here, so that a session opened again under an old id revives nothing.';
COMMENT ON COLUMN dlock.sessions.instance IS
  'The store object that opened it and listens for it. NULL: closed before it was ever opened.';
COMMENT ON COLUMN dlock.sessions.closed_at IS
  'Set once, by its close or by whoever found it expired, and never cleared.';

CREATE TABLE dlock.locks (
  namespace   dlock.namespace NOT NULL,
  lock_key    dlock.lock_key NOT NULL,
  token       bigint  NOT NULL DEFAULT 0,
  floor       bigint,
  held        boolean NOT NULL DEFAULT false,
  session     bigint  NOT NULL DEFAULT 0,
  incarnation bigint  NOT NULL DEFAULT 0,
  owner       dlock.owner NOT NULL DEFAULT '',
  attempt     uuid,
  payload     dlock.payload NOT NULL DEFAULT '',
  granted_at  timestamptz NOT NULL DEFAULT 'epoch',
  expires_at  timestamptz NOT NULL DEFAULT 'epoch',
  PRIMARY KEY (namespace, lock_key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        vacuum_truncate = false);
COMMENT ON TABLE dlock.locks IS
  'One row for each key that was ever asked for. Emptied, not deleted. No further index: an index '
  'on a column that changes would make every renewal write to it.';
COMMENT ON COLUMN dlock.locks.token IS 'The last one granted; it outlives the grant.';
COMMENT ON COLUMN dlock.locks.floor IS
  'Raised by revokes; NULL: never. No grant is at or below it.';
COMMENT ON COLUMN dlock.locks.held IS
  'Not the whole truth: see dlock.grants, which also asks for the time and the session.';
COMMENT ON COLUMN dlock.locks.attempt IS
  'The attempt that was granted last, until it is known that no request of it is on its way.';
COMMENT ON COLUMN dlock.locks.expires_at IS 'Never later than that of the session.';

CREATE TABLE dlock.waiters (
  namespace   dlock.namespace NOT NULL,
  lock_key    dlock.lock_key NOT NULL,
  ticket      bigint NOT NULL,
  session     bigint NOT NULL,
  incarnation bigint NOT NULL,
  attempt     uuid   NOT NULL,
  queued_at   timestamptz NOT NULL,
  called_at   timestamptz,
  PRIMARY KEY (namespace, lock_key, ticket)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        vacuum_truncate = false);
CREATE UNIQUE INDEX waiters_attempt ON dlock.waiters (attempt, incarnation, lock_key);
COMMENT ON TABLE dlock.waiters IS 'Places in the queues of the keys, served by ticket.';
COMMENT ON COLUMN dlock.waiters.called_at IS
  'When it was found to be first in line for a free lock: its claim counts from there.';

CREATE TABLE dlock.spent (
  namespace dlock.namespace NOT NULL,
  session   bigint NOT NULL,
  attempt   uuid   NOT NULL,
  at        timestamptz NOT NULL,
  PRIMARY KEY (namespace, session, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE dlock.spent IS
  'Attempts that are over: a late request of one is never granted. Kept for meta.attempt_memory.';

CREATE TABLE dlock.revocations (
  namespace       dlock.namespace NOT NULL,
  lock_key        dlock.lock_key NOT NULL,
  serial          bigint NOT NULL,
  id              uuid   NOT NULL,
  by              dlock.owner NOT NULL,
  reason          dlock.reason NOT NULL,
  at              timestamptz NOT NULL,
  revoked         boolean NOT NULL,
  previous_token  bigint,
  previous_owner  dlock.owner,
  new_token_floor bigint NOT NULL,
  PRIMARY KEY (namespace, lock_key, serial),
  UNIQUE (namespace, lock_key, id),
  CHECK (revoked = (previous_token IS NOT NULL AND previous_owner IS NOT NULL))
);
CREATE INDEX revocations_token ON dlock.revocations (namespace, lock_key, previous_token)
  WHERE revoked;
COMMENT ON TABLE dlock.revocations IS 'Who ended which grant from outside, and why. Kept for ever.';
COMMENT ON COLUMN dlock.revocations.serial IS 'Counts the revokes of a key.';
COMMENT ON COLUMN dlock.revocations.id IS
  'Names the wish: the same id again is answered with this record.';

CREATE TABLE dlock.recoveries (
  namespace dlock.namespace NOT NULL,
  id        uuid   NOT NULL,
  above     bigint,
  term      bigint NOT NULL,
  at        timestamptz NOT NULL,
  opens_at  timestamptz NOT NULL,
  PRIMARY KEY (namespace, id)
);
COMMENT ON TABLE dlock.recoveries IS 'Recoveries after the data went back. Kept for ever.';
COMMENT ON COLUMN dlock.recoveries.above IS 'The highest token that anybody was known to have.';
COMMENT ON COLUMN dlock.recoveries.opens_at IS 'Until then no session is opened in the namespace.';

CREATE VIEW dlock.grants AS
  SELECT l.*
    FROM dlock.locks l
   WHERE l.held AND l.expires_at > clock_timestamp()
     AND EXISTS (
       SELECT FROM dlock.sessions s
        WHERE s.namespace = l.namespace AND s.session = l.session
          AND s.incarnation = l.incarnation AND s.closed_at IS NULL);
COMMENT ON VIEW dlock.grants IS
  'The grants that live. A session that closes ends them all by writing its own row alone.';

CREATE VIEW dlock.places AS
  SELECT w.*, s.owner, s.instance
    FROM dlock.waiters w
    JOIN dlock.sessions s
      ON s.namespace = w.namespace AND s.session = w.session AND s.incarnation = w.incarnation
   WHERE s.closed_at IS NULL AND s.expires_at > clock_timestamp();
COMMENT ON VIEW dlock.places IS 'The places in the queues whose sessions live.';
