//! Faults of databases.

use std::time::Duration;

use test_servers::{Mode, Postgres, Step};

use super::{examine, examine_until};
use crate::clients::{client, hold};
use crate::command::{Running, run};
use crate::pooler;
use crate::sites::{DATABASE, with_schema};

/// What an unwary hand does to a database, and by which name it is found.
const PLANTED: [(&str, &str, &str); 8] = [
    (
        "sequence_altered",
        "ALTER SEQUENCE dlock.fencing_token_seq CACHE 10",
        "tokens may not rise",
    ),
    (
        "counter_behind",
        "SELECT setval('dlock.fencing_token_seq', 1)",
        "the counter stands at 1 ",
    ),
    (
        "counter_behind",
        "UPDATE dlock.locks SET floor = token + (1::bigint << 44)",
        "below the token",
    ),
    (
        "unlogged",
        "ALTER TABLE dlock.spent SET UNLOGGED",
        "dlock.spent",
    ),
    (
        "other_format",
        "UPDATE dlock.meta SET format = 99",
        "of format 99",
    ),
    (
        "altered_migration",
        "UPDATE dlock.migrations SET checksum = 'another'",
        "migration 1",
    ),
    (
        "schema_altered",
        "DROP FUNCTION dlock.read_1",
        "lacks read_1",
    ),
    ("no_schema", "DROP SCHEMA dlock CASCADE", "dlock is missing"),
];

#[test]
fn what_was_done_to_a_database_is_found() {
    let server = Postgres::start().unwrap();
    for (number, (id, sql, words)) in PLANTED.into_iter().enumerate() {
        let database = format!("planted{number}");
        server.create_database(&database).unwrap();
        let url = server.url(&database);
        run(&url, &["migrate"]).data();
        let guard = hold(&client(&url, "worker-3"), "k");
        assert!(!examine(&url).has(id), "{id} before it is planted");
        server.psql(&database, sql).unwrap();
        examine(&url).assert(id, "critical", words);
        drop(guard);
    }
}

/// The rights that it says are missing are enough.
#[test]
fn rights_that_a_role_lacks_are_found_and_what_is_told_mends_it() {
    let server = Postgres::start().unwrap();
    with_schema(&server);
    server.psql(DATABASE, "CREATE ROLE billing LOGIN").unwrap();
    let theirs = format!("postgres://billing@{}/{DATABASE}", server.address());
    examine(&theirs).assert(
        "missing_grants",
        "critical",
        "the role billing may not execute",
    );
    let told = run(&theirs, &["doctor"]);
    let mending = "fencelock migrate --print-grants billing";
    assert!(told.stdout.contains(mending), "{told:?}");
    let rights = run(&theirs, &["migrate", "--print-grants", "billing"]).data();
    server.psql(DATABASE, &rights).unwrap();
    assert_eq!(examine(&theirs).status, 0);
}

#[test]
fn a_pooler_in_between_is_found() {
    let url = format!(
        "postgres://postgres@{}/app?sslmode=disable",
        pooler::refusing_options()
    );
    examine(&url).assert("pooler", "critical", "PgBouncer");
}

#[test]
fn standbys_alone_and_hosts_that_are_down_are_found() {
    let mut server = Postgres::start().unwrap();
    with_schema(&server);
    let standby = server.standby().unwrap();
    standby.catch_up_with(&server).unwrap();
    let hosts = [server.address(), standby.address()];
    let both = format!("postgres://postgres@{}/{DATABASE}", hosts.join(","));
    let found = examine(&both);
    assert!(!found.has("read_only") && !found.has("unreachable"));
    found.assert("asynchronous_standby", "note", "asynchronously");
    examine(&standby.url(DATABASE)).assert("read_only", "critical", "takes writes");
    server.stop(Mode::Immediate).unwrap();
    let found = examine(&both);
    found.assert("unreachable", "warning", &hosts[0]);
    found.assert("read_only", "critical", "takes writes");
    examine(&server.url(DATABASE)).assert("unreachable", "critical", &hosts[0]);
}

#[test]
fn a_wrong_password_is_found() {
    let server = Postgres::builder().password("secret").start().unwrap();
    with_schema(&server);
    let wrong = format!("postgres://postgres:wrong@{}/{DATABASE}", server.address());
    examine(&wrong).assert("denied", "critical", "password authentication failed");
}

#[test]
fn a_clock_that_is_off_is_found() {
    let server = Postgres::builder().faketime().start().unwrap();
    with_schema(&server);
    let url = server.url(DATABASE);
    assert!(!examine(&url).has("clock_skew"));
    server
        .step_clock(Duration::from_secs(3600), Step::Forward)
        .unwrap();
    examine(&url).assert("clock_skew", "warning", "ahead of");
    server
        .step_clock(Duration::from_secs(7200), Step::Back)
        .unwrap();
    examine(&url).assert("clock_skew", "warning", "behind");
}

#[test]
fn a_recovery_that_nobody_goes_on_with_is_found() {
    let server = Postgres::start().unwrap();
    with_schema(&server);
    let url = server.url(DATABASE);
    let _recovering = Running::start(&url, &["recover", "--hold-off", "1h", "--yes"]);
    let found = examine_until(&url, "namespace_closed");
    found.assert("namespace_closed", "warning", "default");
}
