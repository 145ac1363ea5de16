//! The server's processes: the one that was started, and those that it started.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::user::{User, run_as};
use crate::{memory, processes};

/// How often it is looked whether a process is left, and how often at most.
const LOOK_PERIOD: Duration = Duration::from_millis(2);
const LOOKS: usize = 5_000;

/// A server that was started.
#[derive(Debug)]
pub(crate) struct Server {
    first: Child,
    /// A pipe that each of its processes can read from, so that it breaks once none is left.
    lifeline: ChildStdin,
    user: Option<User>,
}

impl Server {
    pub(crate) fn start(
        folder: &Path,
        command: &mut Command,
        user: Option<User>,
    ) -> io::Result<Self> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.join("log"))?;
        // When the test's process dies, a group in which a process is stopped would be hung up, the
        // supervisor included.
        run_as(user, command).process_group(0);
        let mut first = command
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let lifeline = first.stdin.take();
        Ok(Self {
            lifeline: lifeline.ok_or(io::ErrorKind::BrokenPipe)?,
            first,
            user,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.first.id()
    }

    /// Takes note of its end, if it has ended.
    pub(crate) fn reap(&mut self) -> io::Result<()> {
        self.first.try_wait().map(drop)
    }

    /// Kills every process of the server, waits until none is left, and clears away what none of
    /// them could.
    pub(crate) fn end(mut self) -> io::Result<()> {
        let pid = self.pid();
        // Most end with the first one; one that is stopped does not.
        let others = processes::children_of(pid);
        self.first.kill()?;
        kill(&others)?;
        self.first.wait()?;
        self.await_end()?;
        for id in memory::left_by(pid) {
            run(run_as(self.user, Command::new("ipcrm").args(["-m", &id])))?;
        }
        Ok(())
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a program of its own, in real time; nothing of it is replayed"
    )]
    fn await_end(&mut self) -> io::Result<()> {
        for _ in 0..LOOKS {
            if self.lifeline.write_all(b"\n").is_err() {
                return Ok(());
            }
            std::thread::sleep(LOOK_PERIOD);
        }
        Err(io::Error::other("a process of the server does not end"))
    }
}

fn kill(pids: &[u32]) -> io::Result<()> {
    if pids.is_empty() {
        return Ok(());
    }
    let pids = pids.iter().map(u32::to_string);
    // The standard library kills none but children of its own.
    run(Command::new("sh")
        .args(["-c", "kill -KILL \"$@\"", "sh"])
        .args(pids))
}

/// Runs a command to its end. That it fails is no failure: what it was to end may have ended.
fn run(command: &mut Command) -> io::Result<()> {
    let mut command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    command.wait().map(drop)
}
