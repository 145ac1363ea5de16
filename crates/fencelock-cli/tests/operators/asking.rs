//! Somebody sits at a terminal, and is asked.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

use crate::clients::{client, hold, lost};
use crate::command::{Ended, fencelock};
use crate::sites::{Site, on_each};

const NO: i32 = 1;
const NOT_HELD: i32 = 83;

/// Runs a command at a terminal where this is typed; what is on the screen stands in `stderr`.
fn at_a_terminal(site: &Site, arguments: &[&str], typed: &str) -> Ended {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let tty = ptsname_r(&master).unwrap();
    let tty = OpenOptions::new().read(true).write(true).open(tty).unwrap();
    let mut command = fencelock(&site.url, arguments);
    command
        .stdin(Stdio::from(tty.try_clone().unwrap()))
        .stderr(Stdio::from(tty));
    let mut keyboard = File::from(OwnedFd::from(master));
    writeln!(keyboard, "{typed}").unwrap();
    let output = command.stdout(Stdio::piped()).spawn().unwrap();
    // It has the only other ends of the terminal, so that the screen ends with it.
    drop(command);
    let mut screen = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = keyboard.read(&mut buffer) {
        screen.extend_from_slice(&buffer[..count]);
    }
    let output = output.wait_with_output().unwrap();
    Ended {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(screen).unwrap(),
    }
}

/// Only a yes is a yes.
#[test]
fn a_grant_is_revoked_once_somebody_has_said_yes() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let guard = hold(&worker, "nightly");
        let token = guard.token().to_string();
        let named = ["revoke", "nightly", "--token", &token, "--reason", "stuck"];
        let whoever = ["revoke", "nightly", "--whoever", "--reason", "stuck"];
        for (arguments, typed) in [(&named[..], "n"), (&named, ""), (&whoever, "sure")] {
            let refused = at_a_terminal(site, arguments, typed);
            assert_eq!(refused.status, NO, "{refused:?}");
            let question = format!("{token} of ");
            assert!(refused.stderr.contains("[y/N]"), "{refused:?}");
            assert!(
                refused.stderr.contains(&question) || refused.stderr.contains("worker-3"),
                "{refused:?}"
            );
            assert!(refused.stderr.contains("nothing was done"), "{refused:?}");
            assert_eq!(refused.stdout, "");
        }
        assert!(guard.check().is_ok());
        let done = at_a_terminal(site, &named, "y");
        assert_eq!(done.status, 0, "{done:?}");
        assert!(lost(&guard).reason.is_definite());
        let again = at_a_terminal(site, &named, "y");
        assert_eq!(again.status, NOT_HELD, "{again:?}");
    });
}

#[test]
fn a_recovery_begins_once_somebody_has_said_yes() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let guard = hold(&worker, "nightly");
        let recover = ["recover", "--hold-off", "0"];
        let refused = at_a_terminal(site, &recover, "n");
        assert_eq!(refused.status, NO, "{refused:?}");
        assert!(refused.stderr.contains("ends every session"), "{refused:?}");
        assert!(guard.check().is_ok());
        let done = at_a_terminal(site, &recover, "yes");
        assert_eq!(done.status, 0, "{done:?}");
        lost(&guard);
    });
}
