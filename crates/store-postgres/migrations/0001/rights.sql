-- Everybody may execute a new function until this is said. It must be said last.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA dlock FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA dlock FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA dlock FROM PUBLIC;
