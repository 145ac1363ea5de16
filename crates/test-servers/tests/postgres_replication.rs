//! Standbys follow, are cut off, and take over.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use test_servers::{Mode, Postgres};

const COUNT: &str = "SELECT count(*) FROM color";

fn pair() -> (Postgres, Postgres) {
    let primary = Postgres::start().unwrap();
    primary
        .psql("postgres", "CREATE TABLE color (name text)")
        .unwrap();
    let standby = primary.standby().unwrap();
    (primary, standby)
}

fn insert(postgres: &Postgres) {
    let insert = "INSERT INTO color VALUES ('green')";
    postgres.psql("postgres", insert).unwrap();
}

fn count(postgres: &Postgres) -> String {
    postgres.psql("postgres", COUNT).unwrap()
}

/// P14: a standby follows, and refuses to write.
#[test]
fn a_standby_follows_and_writes_nothing_until_it_is_promoted() {
    let (primary, standby) = pair();
    insert(&primary);
    standby.catch_up_with(&primary).unwrap();
    assert_eq!(count(&standby), "1");
    let write = standby.psql("postgres", "CREATE TABLE other ()");
    let error = write.unwrap_err().to_string();
    assert!(error.contains("25006"), "{error}");
    assert!(primary.cut_replication().is_err(), "it follows nobody");

    standby.promote().unwrap();
    insert(&standby);
    assert_eq!((count(&standby), count(&primary)), ("2".into(), "1".into()));
}

/// P15: what an asynchronous standby has not received is lost when it takes over.
#[test]
fn a_standby_that_was_cut_off_takes_over_without_the_last_writes() {
    let (mut primary, standby) = pair();
    insert(&primary);
    standby.catch_up_with(&primary).unwrap();
    standby.cut_replication().unwrap();
    insert(&primary);
    primary.kill().unwrap();
    standby.promote().unwrap();
    assert_eq!(count(&standby), "1");
}

#[test]
fn a_standby_that_was_cut_off_catches_up_once_it_is_healed() {
    let (mut primary, standby) = pair();
    standby.cut_replication().unwrap();
    insert(&primary);
    assert_eq!(count(&standby), "0");
    standby.heal_replication().unwrap();
    standby.catch_up_with(&primary).unwrap();
    assert_eq!(count(&standby), "1");

    primary.restart(Mode::Immediate).unwrap();
    insert(&primary);
    standby.catch_up_with(&primary).unwrap();
    assert_eq!(count(&standby), "2");
}

/// P16: a primary whose synchronous standby is cut off commits nothing that it has not received.
#[test]
fn a_synchronous_standby_holds_commits_up_while_it_is_cut_off() {
    let (primary, standby) = pair();
    let synchronous = "ALTER SYSTEM SET synchronous_standby_names = 'standby'; \
                       SELECT pg_reload_conf()";
    primary.psql("postgres", synchronous).unwrap();
    insert(&primary);
    standby.cut_replication().unwrap();
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| insert(&primary));
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        while primary.psql("postgres", waiting).unwrap() == "0" {}
        assert!(!stuck.is_finished());
        assert_eq!(count(&primary), "1");
        standby.heal_replication().unwrap();
    });
    assert_eq!(count(&primary), "2");
}

#[test]
fn a_standby_is_let_in_by_password() {
    let primary = Postgres::builder().password("secret").start().unwrap();
    let standby = primary.standby().unwrap();
    standby.catch_up_with(&primary).unwrap();
    assert!(standby.url("postgres").contains(":secret@"));
}
