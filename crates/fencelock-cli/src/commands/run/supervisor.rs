use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use fencelock::spi::{Runtime, TokioRuntime};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Pid, read, write};

use crate::helpers;

/// How long it may take to answer; it is on the same machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether it has answered.
const LOOK: Duration = Duration::from_millis(1);

/// The process that ends the command's group when this one cannot.
#[derive(Debug)]
pub(super) struct Supervisor {
    process: u32,
    // Read and written as they are: what a reactor knows of them may be older than the moment in which
    // a stopped process goes on.
    to: OwnedFd,
    from: OwnedFd,
    heard: Vec<u8>,
    until: Duration,
    unsent: Vec<u8>,
}

impl Supervisor {
    /// Starts it, and waits until nothing that happens to this process ends it.
    pub(super) async fn start() -> io::Result<Self> {
        let mut child = helpers::supervisor()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the supervisor has no pipes"));
        };
        let mut supervisor = Self {
            process: child.id(),
            to: never_waiting(to.into())?,
            from: never_waiting(from.into())?,
            heard: Vec::new(),
            until: Duration::ZERO,
            unsent: Vec::new(),
        };
        supervisor.await_word("ready").await?;
        Ok(supervisor)
    }

    /// Puts the group under its watch: it kills it when this process ends, or at `until`.
    pub(super) async fn watch(&mut self, group: Pid, until: Duration) -> io::Result<()> {
        self.beat(until);
        self.tell(&format!("group {group}"));
        self.await_word("watching").await
    }

    /// Tells it until when the group may run, on the shared clock.
    pub(super) fn beat(&mut self, until: Duration) {
        // What lies so near was measured at another moment, and is the same.
        if until.abs_diff(self.until) > Duration::from_millis(1) {
            self.until = until;
            self.tell(&format!("until {}", until.as_nanos()));
        }
    }

    /// Until when it lets the group run, as it was last told.
    pub(super) fn told(&self) -> Duration {
        self.until
    }

    /// Tells it that the group is gone.
    pub(super) fn done(mut self) {
        self.tell("done");
    }

    /// Whether it is this process.
    pub(super) fn is(&self, process: Pid) -> bool {
        u32::try_from(process.as_raw()) == Ok(self.process)
    }

    /// Whether it has killed the group because the time was over.
    pub(super) fn has_killed(&mut self) -> bool {
        // What cannot be read was not said.
        drop(self.hear());
        self.has_said("killed")
    }

    /// Sends a line. It never waits: a supervisor that does not read keeps to what it knows, and
    /// kills too early rather than too late.
    fn tell(&mut self, line: &str) {
        self.unsent.extend_from_slice(line.as_bytes());
        self.unsent.push(b'\n');
        while !self.unsent.is_empty() {
            match write(&self.to, &self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(Errno::EINTR) => {}
                // Its end is told by the system as that of a child.
                Err(_) => return,
            }
        }
    }

    async fn await_word(&mut self, word: &str) -> io::Result<()> {
        let runtime: &dyn Runtime = &TokioRuntime::current();
        let said = async {
            while !self.has_said(word) {
                self.hear()?;
                if !self.has_said(word) {
                    runtime.sleep(LOOK).await;
                }
            }
            Ok(())
        };
        match runtime.timeout(PATIENCE, said).await {
            Ok(said) => said,
            Err(_) => Err(io::Error::other("the supervisor does not answer")),
        }
    }

    fn hear(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64];
        loop {
            match read(&self.from, &mut buffer) {
                Ok(0) => return Err(io::Error::other("the supervisor has ended")),
                Ok(count) => self.heard.extend_from_slice(&buffer[..count]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn has_said(&self, word: &str) -> bool {
        self.heard
            .split(|byte| *byte == b'\n')
            .any(|line| line == word.as_bytes())
    }
}

fn never_waiting(pipe: OwnedFd) -> io::Result<OwnedFd> {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(pipe)
}
