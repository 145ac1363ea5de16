//! `fencelock` itself, or its supervisor, is killed.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use crate::cut::{DEAF, WITNESS};
use crate::process::{Run, lives, until};
use crate::scratch::{PATIENCE, Scratch};
use crate::servers::{Server, TTL, TTL_OPTION};

/// What a hand-over may take beyond the ttl: the stores' bound, on a machine that is busy.
const BOUND: Duration = Duration::from_secs(6);

/// B182, INV-02: what cannot be caught is minded by the supervisor and the ttl.
#[test]
fn a_kill_takes_the_whole_group_along_and_frees_the_lock_within_the_ttl_on_etcd() {
    killed(&Server::etcd());
}

/// B182, INV-02.
#[test]
fn a_kill_takes_the_whole_group_along_and_frees_the_lock_within_the_ttl_on_postgres() {
    killed(&Server::postgres());
}

fn killed(server: &Server) {
    let folder = Scratch::new();
    let options = [["nightly"].as_slice(), &TTL_OPTION].concat();
    let first = Run::script(&server.url(), &folder, &options, DEAF);
    let group = folder.number("first");
    let second = Run::script(&server.url(), &folder, &options, WITNESS);
    server.await_waiters("nightly", 1);
    assert!(lives(group));
    first.kill();
    let begun = Instant::now();
    until(Duration::from_secs(5), "end of the group", || {
        (!lives(group)).then_some(())
    });
    let gone = begun.elapsed();
    assert_eq!(second.status(), 0);
    let handed_over = begun.elapsed();
    println!("group gone after {gone:?}, lock handed over after {handed_over:?}");
    assert_eq!(folder.lines("began"), ["alone"]);
    assert!(handed_over < TTL + BOUND, "{handed_over:?}");
}

/// B92: those who are killed while they wait leave no connection open, and nobody waits for them.
#[test]
fn waiters_that_are_killed_leave_nothing_that_the_next_has_to_wait_for() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let options = [["k"].as_slice(), &TTL_OPTION].concat();
    let guard = server.hold("k");
    let before = server.backends();
    let wait = || Run::script(&server.url(), &folder, &options, "echo $$ > began");
    let waiters: Vec<_> = (0..20).map(|_| wait()).collect();
    until(PATIENCE, "crowd", || {
        (server.backends() >= before + 20).then_some(())
    });
    let begun = Instant::now();
    for waiter in waiters {
        waiter.kill();
    }
    until(PATIENCE, "end of their connections", || {
        (server.backends() <= before).then_some(())
    });
    let next = wait();
    server.await_waiters("k", 1);
    server.release(guard);
    assert_eq!(next.status(), 0);
    let took = begun.elapsed();
    assert!(took < TTL + BOUND + PATIENCE, "{took:?}");
}

#[test]
fn a_kill_reaches_every_process_of_a_deep_tree_that_stays_in_the_group() {
    let folder = Scratch::new();
    let deep = "nest() { if [ $1 -gt 0 ]; then (nest $(($1 - 1)) & sleep 1000); fi; }
        nest 20 & sleep 0.5; echo $$ > group; sleep 1000";
    let run = Run::script("memory:", &folder, &["tree"], deep);
    let group = folder.number("group");
    run.kill();
    until(Duration::from_secs(5), "end of the group", || {
        (!lives(group)).then_some(())
    });
}

#[test]
fn a_command_without_its_supervisor_is_stopped() {
    let folder = Scratch::new();
    let run = Run::script("memory:", &folder, &["k"], "echo $$ > group; sleep 1000");
    let group = folder.number("group");
    let supervisor = until(PATIENCE, "supervisor", || run.children().first().copied());
    kill(supervisor, Signal::SIGKILL).unwrap();
    let ended = run.ended();
    assert_eq!(ended.status.code(), Some(70), "{ended:?}");
    assert!(ended.stderr.contains("supervisor"), "{ended:?}");
    assert!(!lives(group));
}

/// Its own end is told by the pipe alone: no signal reaches it.
#[test]
fn signals_do_not_end_the_supervisor() {
    let folder = Scratch::new();
    let run = Run::script("memory:", &folder, &["k"], "echo $$ > group; sleep 1000");
    let group = folder.number("group");
    let supervisor = until(PATIENCE, "supervisor", || run.children().first().copied());
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGTSTP,
    ] {
        kill(supervisor, signal).unwrap();
    }
    assert!(lives(group));
    run.kill();
    until(Duration::from_secs(5), "end of the group", || {
        (!lives(group)).then_some(())
    });
}
