//! Processes of the group that are left when the command has ended.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::{Run, lives};
use crate::scratch::Scratch;
use crate::servers::Server;

#[test]
fn what_the_command_leaves_behind_is_ended_before_the_lock_is_released() {
    let server = Server::postgres();
    let folder = Scratch::new();
    // The one left behind tells what it sees of the lock's holder when it is asked to end.
    let script = "echo $$ > group
        (trap 'sleep 0.5; echo > bye; exit' TERM; echo > ready; while :; do sleep 0.02; done) &
        while [ ! -e ready ]; do sleep 0.02; done; exit 3";
    let run = Run::script(&server.url(), &folder, &["k", "--ttl", "20s"], script);
    let group = folder.number("group");
    crate::process::until(Duration::from_secs(30), "farewell", || {
        // Read before looking: the lock is released only after the farewell.
        let free = server.is_free("k");
        let bye = folder.has("bye");
        assert!(
            bye || !free || !folder.has("ready"),
            "released before the end"
        );
        bye.then_some(())
    });
    assert_eq!(run.status(), 3);
    assert!(!lives(group));
    assert!(server.is_free("k"));
}

#[test]
fn one_left_behind_that_hears_no_request_to_end_is_killed_after_the_grace() {
    let folder = Scratch::new();
    let script = "trap '' TERM; sleep 100 & echo $$ > group; exit 3";
    let begun = Instant::now();
    let run = Run::script("memory:", &folder, &["k", "--grace", "500ms"], script);
    let group = folder.number("group");
    assert_eq!(run.status(), 3);
    assert!(begun.elapsed() > Duration::from_millis(500));
    assert!(!lives(group));
}

/// Said in `--help`: one who leaves the group is out of reach, and nobody waits for it.
#[test]
fn one_who_leaves_the_group_is_let_go() {
    let folder = Scratch::new();
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 100' &
        while [ ! -s daemon ]; do sleep 0.02; done; exit 3";
    let run = Run::script("memory:", &folder, &["k"], script);
    let daemon = folder.number("daemon");
    assert_eq!(run.status(), 3);
    let daemon = Pid::from_raw(daemon.try_into().unwrap());
    kill(daemon, Signal::SIGKILL).expect("it lives");
}
