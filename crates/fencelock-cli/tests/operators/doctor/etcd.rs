//! Faults of clusters.

use test_servers::Etcd;

use super::{examine, examine_until};
use crate::clients::{client, hold};
use crate::command::{Running, run};
use crate::sites::etcd_url;

#[test]
fn a_version_with_bugs_that_locks_can_meet_is_named_with_them() {
    let server = Etcd::start().unwrap();
    let found = examine(&etcd_url(&server));
    // Of the distribution's server, or a newer one that was named.
    if server.ctl(&["version"]).unwrap().contains("3.4.") {
        found.assert("known_bugs", "warning", "#14758");
        found.assert("end_of_life", "warning", "no longer mended");
    }
    // Looking makes nothing.
    found.assert("unused_namespace", "note", "default");
    let keys = server.ctl(&["get", "--prefix", "--keys-only", "/dlock/"]);
    assert_eq!(keys.unwrap().trim(), "");
}

#[test]
fn members_that_are_down_are_named_and_so_is_the_want_of_a_leader() {
    let mut cluster = Etcd::cluster(3).unwrap();
    let url = etcd_url(&cluster);
    let hosts = cluster.endpoints();
    cluster.kill(0).unwrap();
    cluster.await_ready().unwrap();
    let found = examine(&url);
    found.assert("unreachable", "warning", &hosts[0]);
    assert_eq!(found.status, 0);
    cluster.kill(1).unwrap();
    examine_until(&url, "no_leader").assert("no_leader", "critical", "leader");
    cluster.kill(2).unwrap();
    examine(&url).assert("unreachable", "critical", "127.0.0.1:");
}

#[test]
fn rights_that_do_not_cover_the_namespace_are_found() {
    let mut server = Etcd::start().unwrap();
    server
        .limit_to("locks", "secret", "/dlock/theirs/")
        .unwrap();
    let host = &server.endpoints()[0];
    let theirs = format!("etcd://locks:secret@{host}?namespace=theirs");
    assert!(!examine(&theirs).has("missing_grants"));
    let other = format!("etcd://locks:secret@{host}?namespace=other");
    examine(&other).assert("missing_grants", "critical", "/dlock/other/");
    let wrong = format!("etcd://locks:wrong@{host}?namespace=theirs");
    examine(&wrong).assert("denied", "critical", host);
}

#[test]
fn a_full_store_is_found() {
    let quota = "--quota-backend-bytes=200000";
    let server = Etcd::builder().argument(quota).start().unwrap();
    let filler = "f".repeat(60_000);
    let full = (0..20).any(|n| {
        server
            .ctl(&["put", &format!("filler/{n}"), &filler])
            .is_err()
    });
    assert!(full, "it takes more than its quota");
    examine_until(&etcd_url(&server), "store_full").assert("store_full", "critical", "NOSPACE");
}

#[test]
fn a_ttl_that_the_cluster_lengthens_is_found() {
    let server = Etcd::builder()
        .argument("--heartbeat-interval=200")
        .argument("--election-timeout=2000")
        .start()
        .unwrap();
    let url = etcd_url(&server);
    examine(&format!("{url}?ttl=1s")).assert("ttl_lengthened", "warning", "at least 3s");
    assert!(!examine(&format!("{url}?ttl=3s")).has("ttl_lengthened"));
}

#[test]
fn a_floor_above_the_counter_and_what_is_not_of_locks_are_found() {
    let server = Etcd::start().unwrap();
    let url = etcd_url(&server);
    drop(hold(&client(&url, "worker-3"), "k"));
    assert!(!examine(&url).has("floor_ahead"));
    let floor = format!("{:020}", (3_u64 << 44) + 1);
    server
        .ctl(&["put", "/dlock/default/floor/k", &floor])
        .unwrap();
    server
        .ctl(&["put", "/dlock/default/lock/junk", "junk"])
        .unwrap();
    let found = examine(&url);
    found.assert("floor_ahead", "critical", "/dlock/default/floor/k");
    found.assert("unreadable", "warning", "/dlock/default/lock/junk");
}

#[test]
fn a_recovery_that_nobody_goes_on_with_is_found() {
    let server = Etcd::start().unwrap();
    let url = etcd_url(&server);
    let recover = ["recover", "--hold-off", "1h", "--yes"];
    let _recovering = Running::start(&url, &recover);
    let found = examine_until(&url, "namespace_closed");
    found.assert("namespace_closed", "warning", "closed for recovery");
    // Whoever wants a lock learns it at once.
    let listed = run(&url, &["list"]);
    assert_eq!(listed.status, 0, "{listed:?}");
}
