//! A server's processes, and the supervisor between them and the test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::user::User;
use crate::{clock, processes};

/// Generous: a busy machine starts three servers slowly. What has failed is noticed at once.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long the threads of a process may take to stand still.
const STAND_LIMIT: Duration = Duration::from_secs(10);
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

/// How a server is started.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// It exists, and is the supervisor's from now on.
    pub(crate) folder: &'a Path,
    /// Whom the server runs as, if not as whoever runs the test.
    pub(crate) user: Option<User>,
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [String],
    /// On top of the environment of the test.
    pub(crate) environment: Vec<(String, String)>,
    /// How the variables begin that are left out: a setting that is meant for another server would
    /// be taken for one of ours.
    pub(crate) foreign: &'static str,
}

impl Server {
    /// A server that is down.
    pub(crate) fn new(launch: &Launch<'_>) -> Result<Self> {
        let user = launch.user.map(|user| user.to_string());
        let mut command = Command::new(env!("SUPERVISOR"));
        command
            .arg(launch.folder)
            .arg(user.as_deref().unwrap_or("-"));
        if !launch.environment.is_empty() {
            // For the server alone, not for its supervisor.
            let settings = launch.environment.iter();
            let settings = settings.map(|(name, value)| format!("{name}={value}"));
            command.arg("env").args(settings);
        }
        command
            .arg(launch.program)
            .args(launch.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Keys that interrupt the test in a terminal do not reach the supervisor.
            .process_group(0);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(launch.foreign) {
                command.env_remove(name);
            }
        }
        for name in PROXY_VARIABLES {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        let mut supervisor = command.spawn().context("the supervisor does not start")?;
        let commands = supervisor.stdin.take();
        let answers = supervisor.stdout.take().context("it has no output")?;
        Ok(Self {
            supervisor,
            commands,
            answers: BufReader::new(answers),
            folder: launch.folder.to_owned(),
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

    /// Waits until it serves, by what `serves` makes of it; `name` is for the error.
    pub(crate) fn await_ready(&self, name: &str, serves: impl Fn() -> bool) -> Result<()> {
        let settled = clock::poll(READY_LIMIT, || {
            let serves = serves();
            // Asked last: were the port another server's, ours would have ended by now.
            match (self.runs(), serves) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            }
        });
        let what = match settled {
            Some(true) => return Ok(()),
            Some(false) => "has ended",
            None => "does not become ready",
        };
        bail!(
            "{name} {what}; the last that it said:\n{}",
            self.last_of_log()
        )
    }

    /// Kills the processes and keeps the folder.
    pub(crate) fn kill(&mut self) -> Result<()> {
        ensure!(self.is_up(), "the server is down");
        match self.ask("kill")?.as_str() {
            "killed" => self.pid = None,
            other => bail!("the supervisor does not kill: {other}"),
        }
        Ok(())
    }

    /// Asks the server by a signal to end, and waits until it has.
    pub(crate) fn end_by(&mut self, signal: Signal, limit: Duration) -> Result<()> {
        self.signal(signal)?;
        let ended = clock::poll(limit, || (!self.runs()).then_some(()));
        ended.with_context(|| format!("the server does not end by {signal:?}"))?;
        self.kill()
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

    /// The processes that it has started.
    pub(crate) fn children(&self) -> Result<Vec<Pid>> {
        let pid = self.pid.context("the server is down")?;
        let children = processes::children_of(pid.as_raw_nonzero().get().unsigned_abs());
        let children = children.into_iter();
        let children = children.map(|child| Pid::from_raw(i32::try_from(child).ok()?));
        Ok(children.flatten().collect())
    }

    /// What it may write to.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.pid.context("the server is down")?;
        send(pid, signal)
    }

    /// Stops the process, and waits until it stands still.
    pub(crate) fn pause(&self) -> Result<()> {
        pause(self.pid.context("the server is down")?)
    }

    /// Lets a paused process go on.
    pub(crate) fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
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

/// Sends a signal to a process.
pub(crate) fn send(pid: Pid, signal: Signal) -> Result<()> {
    kill_process(pid, signal).with_context(|| format!("no process takes {signal:?}"))
}

/// Stops a process, and waits until it stands still.
pub(crate) fn pause(pid: Pid) -> Result<()> {
    send(pid, Signal::STOP)?;
    let stopped = clock::poll(STAND_LIMIT, || stands_still(pid).then_some(()));
    stopped.context("the process does not stop")
}

/// Whether every thread stands still, which comes a little after the signal, or has ended; where the
/// system does not tell, they are taken to.
fn stands_still(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let states = threads.into_iter().flatten().flatten().map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // After the program's name, which is in parentheses.
        stat.rsplit_once(") ")
            .map(|(_, rest)| rest.starts_with(['T', 't', 'Z']))
    });
    states.flatten().all(|stopped| stopped)
}
