//! Signals that `fencelock` is sent.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::cut::WITNESS;
use crate::process::{Run, lives, until};
use crate::scratch::{PATIENCE, Scratch};
use crate::servers::Server;

/// B181.
#[test]
fn a_request_to_end_ends_the_command_first_and_then_frees_the_lock() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let run = Run::script(
        &server.url(),
        &folder,
        &["k"],
        "echo $$ > group; sleep 100; true",
    );
    let group = folder.number("group");
    assert!(!server.is_free("k"));
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    assert!(!lives(group));
    assert!(server.is_free("k"), "it is free when fencelock has ended");
}

/// B182: those that ask for an end are passed on, and the status is the command's.
#[test]
fn every_request_to_end_is_passed_on() {
    let table = [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
    ];
    for (signal, status) in table {
        let folder = Scratch::new();
        // The shell would ignore some of these for what it runs in the background.
        let run = Run::script("memory:", &folder, &["k"], "echo > began; exec sleep 100");
        folder.lines("began");
        run.signal(signal);
        assert_eq!(run.status(), status, "{signal}");
    }
}

/// The command decides what it makes of a request to end, and how long that takes.
#[test]
fn a_command_may_take_its_time_to_end() {
    let folder = Scratch::new();
    let script = "trap 'sleep 2; exit 5' TERM; echo > began; while :; do sleep 0.05; done";
    let run = Run::script("memory:", &folder, &["k", "--grace", "100ms"], script);
    folder.lines("began");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 5);
}

/// B164: the lock is released when the command has ended, and not when it was asked to.
#[test]
fn whoever_waits_begins_after_a_command_that_takes_its_time_to_end() {
    for server in [Server::etcd(), Server::postgres()] {
        let folder = Scratch::new();
        let slow = "trap 'sleep 0.3; echo > ended; exit 5' TERM
            echo $$ > first; while :; do sleep 0.02; done";
        let first = Run::script(&server.url(), &folder, &["k"], slow);
        folder.lines("first");
        let witness = "[ -e ended ] && exec sh witness";
        std::fs::write(folder.file("witness"), WITNESS).unwrap();
        let second = Run::script(&server.url(), &folder, &["k"], witness);
        server.await_waiters("k", 1);
        first.signal(Signal::SIGTERM);
        assert_eq!(first.status(), 5);
        assert_eq!(second.status(), 0, "the first had ended");
        assert_eq!(folder.lines("began"), ["alone"]);
    }
}

/// B182.
#[test]
fn signals_for_the_users_own_use_reach_the_command() {
    let folder = Scratch::new();
    let script = "trap 'echo > one' USR1; trap 'echo > two' USR2; trap 'echo > three' WINCH
        echo > began; while [ ! -e one ] || [ ! -e two ] || [ ! -e three ]; do sleep 0.02; done; exit 6";
    let run = Run::script("memory:", &folder, &["k"], script);
    folder.lines("began");
    for signal in [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGWINCH] {
        run.signal(signal);
    }
    assert_eq!(run.status(), 6);
}

/// The command must not start anything while it is stopped: a shell waits in the kernel for what it has
/// just begun to start, and if that is stopped first, the shell is never seen to stop.
#[test]
fn a_stop_by_signal_stops_the_command_and_a_request_to_go_on_lets_both_go_on() {
    let folder = Scratch::new();
    mkfifo(&folder.file("words"), Mode::S_IRWXU).unwrap();
    let script = "exec 3<>words; echo $$ > group; while read word <&3; do echo $word > heard; done";
    let run = Run::script("memory:", &folder, &["k"], script);
    let group = folder.number("group");
    let state = |process: i64| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().chars().next()
    };
    run.signal(Signal::SIGTSTP);
    for process in [group, run.id().as_raw().into()] {
        until(PATIENCE, "stop", || {
            (state(process) == Some('T')).then_some(())
        });
    }
    std::fs::write(folder.file("words"), "go\n").unwrap();
    assert!(!folder.has("heard"));
    run.signal(Signal::SIGCONT);
    assert_eq!(folder.lines("heard"), ["go"]);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
}

/// What was ignored when `fencelock` began, as under `nohup`, is ignored by both.
#[test]
fn an_ignored_hang_up_stays_ignored() {
    let folder = Scratch::new();
    let program = env!("CARGO_BIN_EXE_fencelock");
    let script = format!(
        "trap '' HUP; exec {program} run k -- sh -c 'echo $$ > group; kill -HUP $PPID; kill -HUP $$; sleep 0.2; exit 4'"
    );
    let mut command = crate::process::fencelock("memory:", &folder);
    let envs: Vec<_> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    command = std::process::Command::new("sh");
    let status = command
        .args(["-c", &script])
        .envs(envs)
        .current_dir(folder.path())
        .status();
    assert_eq!(status.unwrap().code(), Some(4));
}

/// B53, B184.
#[test]
fn a_request_to_end_while_waiting_ends_it_at_once_and_leaves_no_place() {
    for server in [Server::etcd(), Server::postgres()] {
        let folder = Scratch::new();
        let guard = server.hold("k");
        let run = Run::script(&server.url(), &folder, &["k"], "echo > began");
        server.await_waiters("k", 1);
        let begun = Instant::now();
        run.signal(Signal::SIGINT);
        assert_eq!(run.status(), 130);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        server.await_waiters("k", 0);
        assert!(!folder.has("began"));
        server.release(guard);
    }
}
