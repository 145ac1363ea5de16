//! `fencelock` does not run for a while, or has lost the lock.

use std::thread::sleep;
use std::time::Duration;

use fencelock::spi::RevokeTarget;
use nix::sys::signal::Signal;

use crate::cut::{DEAF, WITNESS};
use crate::process::{Run, lives, until};
use crate::scratch::{PATIENCE, Scratch};
use crate::servers::{Server, TTL_OPTION, block_on};

/// INV-10: a process that is stopped cannot mind its deadline; its supervisor does.
#[test]
fn a_stopped_process_does_not_let_its_command_outlive_the_lock_on_etcd() {
    overslept(&Server::etcd());
}

/// INV-10.
#[test]
fn a_stopped_process_does_not_let_its_command_outlive_the_lock_on_postgres() {
    overslept(&Server::postgres());
}

fn overslept(server: &Server) {
    let folder = Scratch::new();
    let options = [["nightly"].as_slice(), &TTL_OPTION].concat();
    let first = Run::script(&server.url(), &folder, &options, DEAF);
    let group = folder.number("first");
    let second = Run::script(&server.url(), &folder, &options, WITNESS);
    server.await_waiters("nightly", 1);
    first.signal(Signal::SIGSTOP);
    // It does not reap meanwhile: what it will find are dead.
    assert_eq!(second.status(), 0);
    assert_eq!(living(group), 0);
    first.signal(Signal::SIGCONT);
    let ended = first.ended();
    assert_eq!(ended.status.code(), Some(80), "{ended:?}");
    assert!(!lives(group));
}

/// How many of the group are more than dead and not yet reaped.
fn living(group: i64) -> usize {
    let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
    let processes = std::fs::read_dir("/proc").unwrap();
    let stats = processes.filter_map(|entry| stat(entry.unwrap()));
    let living = stats.filter(|stat| {
        // What follows the name in parentheses: state, parent, group.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let mut fields = fields.split_whitespace();
        let state = fields.next().unwrap_or("Z");
        let of_group = fields.nth(1) == Some(group.to_string().as_str());
        of_group && state != "Z"
    });
    living.count()
}

#[test]
fn a_short_stop_does_no_harm() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let options = [["short"].as_slice(), &TTL_OPTION].concat();
    let script = "echo > began; sleep 2.5; exit 9";
    let run = Run::script(&server.url(), &folder, &options, script);
    folder.lines("began");
    run.signal(Signal::SIGSTOP);
    sleep(Duration::from_millis(300));
    run.signal(Signal::SIGCONT);
    assert_eq!(run.status(), 9);
}

/// The store has given the lock up when this is heard; the command gets its grace all the same.
#[test]
fn a_revoked_command_is_asked_to_end_and_then_killed() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let (polite, deaf) = ("trap 'echo bye > bye; exit 0' TERM", "trap '' TERM");
    for (key, trap) in [("polite", polite), ("deaf", deaf)] {
        let options = [key, "--ttl", "4s", "--grace", "400ms"];
        let script = format!("{trap}; echo $$ > {key}; while :; do sleep 0.05; done");
        let run = Run::script(&server.url(), &folder, &options, &script);
        let group = folder.number(key);
        let revoke = server.client().admin().revoke(key, RevokeTarget::Whoever);
        block_on(revoke.by("alice").reason("stuck").send()).unwrap();
        let ended = run.ended();
        assert_eq!(ended.status.code(), Some(80), "{ended:?}");
        assert!(ended.stderr.contains("stuck"), "{ended:?}");
        assert!(!lives(group));
    }
    assert!(folder.has("bye"));
}

/// A store that answers late, but in time, is no reason to stop anybody.
#[test]
fn a_slow_store_does_not_stop_a_command() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let (proxy, url) = server.proxy();
    let options = [["slow"].as_slice(), &TTL_OPTION].concat();
    let run = Run::script(&url, &folder, &options, "echo > began; sleep 4; exit 3");
    folder.lines("began");
    proxy.delay(
        test_servers::Direction::ToClient,
        Duration::from_millis(150),
    );
    let ended = run.ended();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
}

/// Nothing is left to look after once everything has ended in order.
#[test]
fn the_supervisor_ends_with_the_command() {
    let folder = Scratch::new();
    let run = Run::script("memory:", &folder, &["k"], "echo > began; sleep 0.3");
    folder.lines("began");
    let supervisor = run.children()[0];
    assert_eq!(run.status(), 0);
    until(PATIENCE, "end of the supervisor", || {
        let path = format!("/proc/{supervisor}/cmdline");
        let words = std::fs::read_to_string(path).unwrap_or_default();
        (!words.contains("%supervise")).then_some(())
    });
}
