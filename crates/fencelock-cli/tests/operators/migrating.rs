//! Making what a store needs.

use serde_json::json;
use test_servers::{Etcd, Postgres};

use crate::clients::{client, hold};
use crate::command::run;
use crate::sites::{DATABASE, etcd_url};

fn empty() -> Postgres {
    let server = Postgres::start().unwrap();
    server.create_database(DATABASE).unwrap();
    server
}

/// Before, a command fails and names this one; repeated, it is fine.
#[test]
fn the_schema_is_made_once() {
    let server = empty();
    let url = server.url(DATABASE);
    let before = run(&url, &["list"]);
    assert_eq!(before.status, 76, "{before:?}");
    assert!(before.stderr.contains("fencelock migrate"), "{before:?}");
    let made = run(&url, &["migrate", "--json"]).json();
    assert_eq!(made, json!({ "before": null, "now": 1 }));
    let again = run(&url, &["migrate"]).data();
    assert_eq!(again, "the locks are of format 1, as they should be\n");
    drop(hold(&client(&url, "worker-3"), "nightly"));
}

/// The text that is printed does the same, and the rights that are printed are enough for a client.
#[test]
fn what_is_printed_makes_the_same_schema_and_lets_a_role_in() {
    let server = empty();
    let url = server.url(DATABASE);
    let script = run(&url, &["migrate", "--print"]).data();
    server.psql(DATABASE, &script).unwrap();
    assert_eq!(run(&url, &["migrate", "--json"]).json()["before"], json!(1));
    server.psql(DATABASE, "CREATE ROLE billing LOGIN").unwrap();
    let theirs = format!("postgres://billing@{}/{DATABASE}", server.address());
    assert_eq!(run(&theirs, &["list"]).status, 77);
    let rights = run(&url, &["migrate", "--print-grants", "billing"]).data();
    server.psql(DATABASE, &rights).unwrap();
    run(&theirs, &["list"]).data();
    drop(hold(&client(&theirs, "worker-3"), "nightly"));
    // What it did not get is told.
    let recover = run(&theirs, &["recover", "--hold-off", "0", "--yes"]);
    assert_eq!(recover.status, 77, "{recover:?}");
}

#[test]
fn etcd_needs_nothing_made() {
    let server = Etcd::start().unwrap();
    let url = etcd_url(&server);
    let printed = run(&url, &["migrate", "--print"]);
    assert_eq!((printed.status, printed.stdout.as_str()), (0, ""));
    let made = run(&url, &["migrate"]).data();
    assert_eq!(made, "the locks are of format 1, as they should be\n");
}
