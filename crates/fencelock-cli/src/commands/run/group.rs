use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::helpers;

/// The command with everything that it starts and that stays in its process group.
///
/// Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    leader: Leader,
    gone: bool,
}

/// What the first process of the group does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Leader {
    Runs,
    /// By this signal.
    Stopped(Signal),
    /// It has ended with this status: its own, or 128 and the signal that ended it.
    Ended(u8),
}

impl Group {
    /// Starts the process that will be the command. It stops before the command's first instruction,
    /// and goes on with [`go_on`](Self::go_on).
    pub(super) fn prepare(
        command: &[OsString],
        environment: &[(&str, String)],
    ) -> io::Result<Self> {
        // Those whose parent ends first come to this process, so that it knows when they are gone.
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_child_subreaper(true)?;
        let child = helpers::launcher()
            .args(command)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .spawn()?;
        let id = i32::try_from(child.id()).map_err(io::Error::other)?;
        Ok(Self {
            id: Pid::from_raw(id),
            leader: Leader::Runs,
            gone: false,
        })
    }

    pub(super) fn id(&self) -> Pid {
        self.id
    }

    pub(super) fn leader(&self) -> Leader {
        self.leader
    }

    /// Lets the command begin, or go on.
    pub(super) fn go_on(&mut self) {
        self.send(Signal::SIGCONT);
        if matches!(self.leader, Leader::Stopped(_)) {
            self.leader = Leader::Runs;
        }
    }

    /// Sends a signal to all of the group; where there is nobody any more, to nobody.
    ///
    /// One who is stopped hears of an end only when it goes on.
    pub(super) fn send(&self, signal: Signal) {
        if self.gone {
            return;
        }
        killpg(self.id, signal).ok();
        if super::signals::is_ending(signal) && matches!(self.leader, Leader::Stopped(_)) {
            killpg(self.id, Signal::SIGCONT).ok();
        }
    }

    /// Takes in what has happened to processes of the group, and to others that came to this
    /// process; these are told.
    pub(super) fn look(&mut self) -> Vec<Pid> {
        let mut others = Vec::new();
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
        loop {
            match waitpid(None, Some(flags)) {
                Ok(WaitStatus::StillAlive) => break,
                Ok(change) => {
                    if change.pid() == Some(self.id) {
                        self.note(change);
                    } else if matches!(change, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
                        others.extend(change.pid());
                    }
                }
                Err(Errno::EINTR) => {}
                // There are no children.
                Err(_) => break,
            }
        }
        // Before it has ended its number is its own.
        if matches!(self.leader, Leader::Ended(_)) && !self.gone {
            self.gone = killpg(self.id, None) == Err(Errno::ESRCH);
        }
        others
    }

    /// Whether nobody of the group is left.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    fn note(&mut self, change: WaitStatus) {
        self.leader = match change {
            WaitStatus::Exited(_, status) => {
                // The system has only eight bits of it.
                Leader::Ended(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
            }
            WaitStatus::Signaled(_, signal, _) => Leader::Ended(ended_by(signal)),
            WaitStatus::Stopped(_, signal) => Leader::Stopped(signal),
            WaitStatus::Continued(_) => Leader::Runs,
            _ => self.leader,
        };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::SIGKILL);
    }
}

/// The status by which shells tell that a signal ended a process.
pub(super) fn ended_by(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(u8::MAX)
}
