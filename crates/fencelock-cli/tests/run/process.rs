//! `fencelock` as a process.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::scratch::{PATIENCE, Scratch};

/// `fencelock` with nothing of the surroundings, in this folder.
pub(crate) fn fencelock(store: &str, folder: &Scratch) -> Command {
    // Whoever started the tests may ignore signals, as shells have jobs in the background do, and
    // what is ignored is inherited.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_fencelock")]);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("FENCELOCK_") || text.starts_with("PG") {
            command.env_remove(&name);
        }
    }
    command
        .env("FENCELOCK_STORE", store)
        .env("XDG_CONFIG_HOME", folder.path())
        .env("NO_COLOR", "1")
        .current_dir(folder.path())
        .stdin(Stdio::null());
    command
}

/// A `fencelock run` that goes on.
pub(crate) struct Run {
    child: Child,
    stderr: PathBuf,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stderr: String,
}

impl Run {
    /// Runs a script of the shell while `key` is locked. What it says goes to files of that folder.
    pub(crate) fn script(store: &str, folder: &Scratch, options: &[&str], script: &str) -> Self {
        Self::command(store, folder, options, &["sh", "-c", script])
    }

    pub(crate) fn command(
        store: &str,
        folder: &Scratch,
        options: &[&str],
        command: &[&str],
    ) -> Self {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let stderr = folder.file(&format!("stderr-{number}"));
        let child = fencelock(store, folder)
            .arg("run")
            .args(options)
            .arg("--")
            .args(command)
            .stdout(Stdio::null())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        Self { child, stderr }
    }

    pub(crate) fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.id(), signal).unwrap();
    }

    /// Its children: the supervisor first, then the command.
    pub(crate) fn children(&self) -> Vec<Pid> {
        let id = self.id();
        let path = format!("/proc/{id}/task/{id}/children");
        let text = fs::read_to_string(path).unwrap_or_default();
        let ids = text
            .split_whitespace()
            .map(|id| Pid::from_raw(id.parse().unwrap()));
        ids.collect()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// Waits until it has ended.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Ended {
        let status = until(PATIENCE, "the end of fencelock", || {
            self.child.try_wait().unwrap()
        });
        Ended {
            status,
            stderr: self.said(),
        }
    }

    /// Waits until it has ended, with a status of its own.
    #[track_caller]
    pub(crate) fn status(self) -> i32 {
        let ended = self.ended();
        ended.status.code().unwrap_or_else(|| panic!("{ended:?}"))
    }

    /// Has it killed, and waits for that.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        assert_eq!(self.child.wait().unwrap().signal(), Some(9));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether anybody of the group lives.
pub(crate) fn lives(group: i64) -> bool {
    let group = Pid::from_raw(group.try_into().unwrap());
    killpg(group, None) != Err(Errno::ESRCH)
}

/// Asks again and again, until there is an answer.
#[track_caller]
pub(crate) fn until<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < limit, "no {what} within {limit:?}");
        sleep(Duration::from_millis(2));
    }
}
