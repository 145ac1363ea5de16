//! A request to end that comes in the same moment as the grant.

use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use test_servers::Direction;

use crate::process::{Run, until};
use crate::scratch::{PATIENCE, Scratch};
use crate::servers::Server;

/// B53, B185: the grant's answer and the request are both there when the process runs again.
#[test]
fn a_request_to_end_that_comes_with_the_grant_keeps_the_command_from_beginning() {
    for server in [Server::etcd(), Server::postgres()] {
        let folder = Scratch::new();
        let (proxy, url) = server.proxy();
        let guard = server.hold("k");
        let token = guard.token();
        let run = Run::script(&url, &folder, &["k"], "echo > began");
        server.await_waiters("k", 1);
        proxy.delay(Direction::ToClient, Duration::from_millis(200));
        server.release(guard);
        until(PATIENCE, "grant", || {
            let holder = server.read("k").holder;
            holder
                .is_some_and(|holder| holder.token > token)
                .then_some(())
        });
        run.signal(Signal::SIGSTOP);
        sleep(Duration::from_millis(600));
        run.signal(Signal::SIGTERM);
        proxy.heal();
        run.signal(Signal::SIGCONT);
        assert_eq!(run.status(), 143);
        until(PATIENCE, "free lock", || server.is_free("k").then_some(()));
        assert!(!folder.has("began"));
    }
}

/// B185: the lock is held, the command's process is being made, and the request comes.
#[test]
fn a_request_to_end_before_the_first_instruction_keeps_the_command_from_beginning() {
    let mut in_between = 0;
    for _ in 0..40 {
        let folder = Scratch::new();
        let run = Run::script("memory:", &folder, &["k"], "echo > began; sleep 100");
        while run.children().is_empty() {
            std::hint::spin_loop();
        }
        run.signal(Signal::SIGSTOP);
        // Had it begun, it would go on beginning.
        sleep(Duration::from_millis(30));
        let too_late = folder.has("began");
        run.signal(Signal::SIGTERM);
        run.signal(Signal::SIGCONT);
        let ended = run.ended();
        assert_eq!(ended.status.code(), Some(143), "{ended:?}");
        if !too_late {
            in_between += 1;
            assert!(!folder.has("began"), "{ended:?}");
        }
    }
    println!("{in_between} of 40 requests came in between");
    assert!(in_between > 0);
}

/// B185: the request comes when the command has begun.
#[test]
fn a_request_to_end_right_after_the_beginning_ends_the_command() {
    let folder = Scratch::new();
    let run = Run::script("memory:", &folder, &["k"], "kill -TERM $PPID; sleep 100");
    assert_eq!(run.status(), 143);
}
