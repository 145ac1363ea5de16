//! A server's process, and the supervisor between it and the test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How many of the last lines of a log an error shows.
const SHOWN_LINES: usize = 15;
/// Servers reach each other without what the system goes through to reach the world.
const PROXY_VARIABLES: [&str; 4] = ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// A server with a folder of its own. Dropped, it is killed, and its folder deleted.
#[derive(Debug)]
pub(crate) struct Server {
    supervisor: Child,
    /// Taken when the supervisor is to end.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
    pid: Option<Pid>,
}

impl Server {
    /// A server that is down. The folder exists, and is the supervisor's from now on. The variables
    /// of the environment come on top of those of the test.
    pub(crate) fn new(
        folder: &Path,
        program: &Path,
        arguments: &[String],
        environment: Vec<(String, String)>,
    ) -> Result<Self> {
        let mut command = Command::new(env!("SUPERVISOR"));
        command
            .arg(folder)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Keys that interrupt the test in a terminal do not reach the supervisor.
            .process_group(0);
        // A setting that is meant for another server would be taken for one of ours.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ETCD_") {
                command.env_remove(name);
            }
        }
        if cfg!(target_arch = "aarch64") {
            // Without it, etcd before 3.5 refuses to start on this architecture.
            command.env("ETCD_UNSUPPORTED_ARCH", "arm64");
        }
        for name in PROXY_VARIABLES {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command.envs(environment);
        let mut supervisor = command.spawn().context("the supervisor does not start")?;
        let commands = supervisor.stdin.take();
        let answers = supervisor.stdout.take().context("it has no output")?;
        Ok(Self {
            supervisor,
            commands,
            answers: BufReader::new(answers),
            folder: folder.to_owned(),
            pid: None,
        })
    }

    /// Starts the process.
    pub(crate) fn start(&mut self) -> Result<()> {
        ensure!(!self.is_up(), "the server is up");
        let answer = self.ask("start")?;
        let pid = answer.parse().ok().and_then(Pid::from_raw);
        self.pid = Some(pid.with_context(|| format!("the server does not start: {answer}"))?);
        Ok(())
    }

    /// Kills the process and keeps its folder.
    pub(crate) fn kill(&mut self) -> Result<()> {
        ensure!(self.is_up(), "the server is down");
        match self.ask("kill")?.as_str() {
            "killed" => self.pid = None,
            other => bail!("the supervisor does not kill: {other}"),
        }
        Ok(())
    }

    /// Whether the server was started and not killed.
    pub(crate) const fn is_up(&self) -> bool {
        self.pid.is_some()
    }

    /// Whether there is a process; a stopped one counts, one that ended by itself does not.
    pub(crate) fn runs(&self) -> bool {
        self.pid.is_some_and(|pid| test_kill_process(pid).is_ok())
    }

    /// The process, while it is up.
    pub(crate) const fn pid(&self) -> Option<Pid> {
        self.pid
    }

    /// What it may write to.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.pid.context("the server is down")?;
        kill_process(pid, signal).with_context(|| format!("no process takes {signal:?}"))
    }

    /// Whether every thread stands still, which comes a little after the signal; where the system
    /// does not tell, they are taken to.
    pub(crate) fn stands_still(&self) -> bool {
        let Some(pid) = self.pid else {
            return false;
        };
        let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
        let states = threads.into_iter().flatten().flatten().map(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // After the program's name, which is in parentheses.
            stat.rsplit_once(") ")
                .map(|(_, rest)| rest.starts_with(['T', 't']))
        });
        states.flatten().all(|stopped| stopped)
    }

    /// The end of what the server wrote.
    pub(crate) fn last_of_log(&self) -> String {
        let log = fs::read(self.folder.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }

    fn ask(&mut self, command: &str) -> Result<String> {
        let commands = self.commands.as_mut().context("it has no input")?;
        writeln!(commands, "{command}").context("the supervisor is gone")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.commands.take());
        // A supervisor that failed has said so on standard error.
        drop(self.supervisor.wait());
    }
}
