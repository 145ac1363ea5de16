-- Which migrations this database has had; a table of our own, so that it never meets that of an
-- application.

CREATE TABLE IF NOT EXISTS dlock.migrations (
  version    int  PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  checksum   text NOT NULL
);
COMMENT ON TABLE dlock.migrations IS 'Which migrations of the locks were applied.';
