//! Waiting for a lock that someone else has.

use std::time::{Duration, Instant};

use test_servers::Direction;

use crate::process::Run;
use crate::scratch::Scratch;
use crate::servers::Server;

/// B188.
#[test]
fn a_lock_of_someone_else_has_statuses_of_its_own_and_is_waited_for_on_etcd() {
    waits(&Server::etcd());
}

/// B188.
#[test]
fn a_lock_of_someone_else_has_statuses_of_its_own_and_is_waited_for_on_postgres() {
    waits(&Server::postgres());
}

fn waits(server: &Server) {
    let folder = Scratch::new();
    let guard = server.hold("k");
    let table: [(&[&str], i32); 4] = [
        (&["k", "--wait", "0"], 75),
        (&["k", "--wait", "0", "--busy-status", "0"], 0),
        (&["k", "--wait", "300ms"], 79),
        (&["k", "--wait", "300ms", "--busy-status", "9"], 9),
    ];
    for (options, status) in table {
        let begun = Instant::now();
        let ended = Run::script(&server.url(), &folder, options, "echo > began").ended();
        assert_eq!(ended.status.code(), Some(status), "{ended:?}");
        assert!(ended.stderr.contains("not granted"), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{options:?}");
    }
    assert!(!folder.has("began"));

    let token = guard.token();
    let run = Run::script(
        &server.url(),
        &folder,
        &["k"],
        "echo $FENCELOCK_TOKEN > token",
    );
    server.await_waiters("k", 1);
    server.release(guard);
    assert_eq!(run.status(), 0);
    let next = folder.lines("token").remove(0).parse().unwrap();
    assert!(token < next, "{token} is before {next}");
    assert!(server.is_free("k"));
}

#[test]
fn namespaces_do_not_know_each_other() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let guard = server.hold("k");
    let options = ["k", "--wait", "0", "--namespace", "other"];
    let run = Run::script(&server.url(), &folder, &options, "exit 5");
    assert_eq!(run.status(), 5);
    server.release(guard);
}

#[test]
fn a_store_that_is_silent_is_out_of_reach_and_not_busy() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let (proxy, url) = server.proxy();
    proxy.swallow(Direction::ToClient);
    let options = ["k", "--wait", "0", "--timeout", "1s"];
    let ended = Run::script(&url, &folder, &options, "echo > began").ended();
    assert_eq!(ended.status.code(), Some(69), "{ended:?}");
    assert!(ended.stderr.contains("did not answer"), "{ended:?}");
    assert!(!folder.has("began"));
}
