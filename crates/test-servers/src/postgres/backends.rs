//! Signals to the processes of a server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, test_kill_process};

use super::Postgres;
use crate::{clock, server};

/// How long a process may take to end.
const END_LIMIT: Duration = Duration::from_secs(10);

impl Postgres {
    /// Stops the process that takes connections, as `SIGSTOP` does, and waits until it stands still:
    /// open connections work, new ones stay without an answer.
    ///
    /// # Errors
    ///
    /// When the server is down, or does not stop.
    pub fn pause(&self) -> Result<()> {
        self.server.pause()
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// When the server is down.
    pub fn resume(&self) -> Result<()> {
        self.server.resume()
    }

    /// Stops all of its processes and waits until they stand still: connections stay open, nothing
    /// answers.
    ///
    /// # Errors
    ///
    /// When the server is down, or does not stop.
    pub fn freeze(&self) -> Result<()> {
        // First the one that starts the others, and that takes note of their ends.
        self.server.pause()?;
        let mut children = self.server.children()?.into_iter();
        children.try_for_each(server::pause)
    }

    /// Lets all of its processes go on.
    ///
    /// # Errors
    ///
    /// When the server is down.
    pub fn thaw(&self) -> Result<()> {
        for child in self.server.children()? {
            server::send(child, Signal::CONT)?;
        }
        self.server.resume()
    }

    /// Stops one of its processes and waits until it stands still. `pid` is as `pg_backend_pid()` or
    /// `pg_stat_activity` tell it; that of a process that sends to a standby will do as well.
    ///
    /// # Errors
    ///
    /// When the server has no such process, or it does not stop; so for the other methods that take
    /// one.
    pub fn pause_backend(&self, pid: i32) -> Result<()> {
        server::pause(self.backend(pid)?)
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// When the server has no such process.
    pub fn resume_backend(&self, pid: i32) -> Result<()> {
        server::send(self.backend(pid)?, Signal::CONT)
    }

    /// Kills one of its processes and waits until it is gone. The server then ends all of its
    /// sessions and recovers as after a crash; [`await_ready`](Self::await_ready) waits for that.
    ///
    /// # Errors
    ///
    /// When the server has no such process.
    pub fn kill_backend(&self, pid: i32) -> Result<()> {
        self.end_backend(pid, Signal::KILL)
    }

    /// Ends a session as `pg_terminate_backend` does, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// When the server has no such process, or it does not end, as one that is paused.
    pub fn terminate_backend(&self, pid: i32) -> Result<()> {
        self.end_backend(pid, Signal::TERM)
    }

    fn end_backend(&self, pid: i32, signal: Signal) -> Result<()> {
        let backend = self.backend(pid)?;
        server::send(backend, signal)?;
        let gone = clock::poll(END_LIMIT, || {
            test_kill_process(backend).is_err().then_some(())
        });
        gone.context("the process does not end")
    }

    fn backend(&self, pid: i32) -> Result<Pid> {
        let pid = Pid::from_raw(pid).context("no number of a process")?;
        let is_ours = self.server.children()?.contains(&pid);
        ensure!(is_ours, "the server has no process {pid}");
        Ok(pid)
    }
}
