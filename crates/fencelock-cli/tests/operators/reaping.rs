//! Clearing away what is dead.

use std::time::Duration;

use serde_json::json;
use test_servers::Postgres;

use crate::clients::{client, hold};
use crate::command::{Running, run};
use crate::sites::{DATABASE, on_each, with_schema};

const DENIED: i32 = 77;

/// Of a client that was killed, session and grant are cleared once they are dead; nothing that lives
/// is. A store that expires by itself has nothing to clear.
#[test]
fn what_a_killed_client_left_is_cleared_and_nothing_else() {
    on_each(|site| {
        let living = client(&site.url, "living");
        let guard = hold(&living, "held");
        let wait = [
            "run",
            "left",
            "--ttl",
            "2s",
            "--",
            "sh",
            "-c",
            "echo held; sleep 100",
        ];
        let mut killed = Running::start(&site.url, &wait);
        assert_eq!(killed.line(), "held");
        drop(killed);
        run(&site.url, &["wait", "left", "--at-most", "30s"]).data();
        let first = run(&site.url, &["reap", "--json"]).json();
        let dead = if site.name == "postgres" { 2 } else { 0 };
        assert_eq!(first, json!({ "cleared": dead }));
        assert_eq!(run(&site.url, &["reap"]).data(), "nothing was dead\n");
        assert!(guard.check().is_ok());
        let kept = run(&site.url, &["list", "--json"]).json();
        assert_eq!(kept[0]["key"], json!("held"), "{kept}");
    });
}

/// With a pause in between it goes on.
#[test]
fn it_goes_on_where_it_is_told_to() {
    let mut reaper = Running::start("memory:", &["reap", "--every", "50ms"]);
    for _ in 0..3 {
        assert_eq!(reaper.line(), "nothing was dead");
    }
    assert_eq!(reaper.status_within(Duration::from_millis(200)), None);
}

/// A role of its own may clear up and nothing else; one that takes locks may not clear up.
#[test]
fn each_role_has_the_rights_of_its_duty() {
    let server = Postgres::start().unwrap();
    with_schema(&server);
    let (url, address) = (server.url(DATABASE), server.address());
    let theirs = |role: &str| format!("postgres://{role}@{address}/{DATABASE}");
    for (role, more) in [("billing", None), ("reaper", Some("--reaper"))] {
        let create = format!("CREATE ROLE {role} LOGIN");
        server.psql(DATABASE, &create).unwrap();
        let print = ["migrate", "--print-grants", role];
        let rights = run(&url, &[&print[..], more.as_slice()].concat()).data();
        server.psql(DATABASE, &rights).unwrap();
    }
    assert_eq!(
        run(&theirs("reaper"), &["reap"]).data(),
        "nothing was dead\n"
    );
    let held = run(
        &theirs("reaper"),
        &["run", "k", "--wait", "0", "--", "true"],
    );
    assert_eq!(held.status, DENIED, "{held:?}");
    let reaped = run(&theirs("billing"), &["reap", "--every", "1s"]);
    assert_eq!(reaped.status, DENIED, "{reaped:?}");
}
