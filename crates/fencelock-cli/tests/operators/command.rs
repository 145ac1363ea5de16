//! The command, as a process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Nothing of the user's surroundings gets in.
pub(crate) fn fencelock(store: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencelock"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("FENCELOCK_") || text.starts_with("PG") || text == "SUDO_USER" {
            command.env_remove(&name);
        }
    }
    command
        .args(arguments)
        .env("FENCELOCK_STORE", store)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env("NO_COLOR", "1")
        .current_dir(Path::new("/"))
        .stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(store: &str, arguments: &[&str]) -> Ended {
    Ended::of(&mut fencelock(store, arguments))
}

impl Ended {
    /// Runs the command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("it starts");
        Self {
            status: output.status.code().expect("no signal ended it"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Its data, where all went well.
    #[track_caller]
    pub(crate) fn data(self) -> String {
        assert_eq!(self.status, 0, "{self:?}");
        self.stdout
    }

    /// Its data as a document.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let told = format!("{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {told}"))
    }
}

/// A command that goes on, and what it prints.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(store: &str, arguments: &[&str]) -> Self {
        let mut command = fencelock(store, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, lines }
    }

    /// Blocks until it has printed one more.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("UTF-8");
        line.trim_end().to_owned()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is ours").is_none()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn status_within(&mut self, limit: Duration) -> Option<i32> {
        let deadline = Instant::now() + limit;
        while self.is_running() {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.wait().expect("it is ours").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
