//! The process that ends the command's group when `fencelock` is killed, or is stopped beyond the
//! deadline of its lock.
//!
//! It has a session of its own, and hears from `fencelock` by a pipe, in lines:
//!
//! | line | means |
//! |---|---|
//! | `group N` | this is the process group |
//! | `until N` | it may run until then, in nanoseconds of the shared clock |
//! | `done` | it is gone; nothing is left to do |
//!
//! The end of the pipe is the end of `fencelock`. It answers `ready`, and `watching` to a `group`;
//! before it kills because the time is over, it says `killed`.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, read, setsid};

use crate::exit::Exit;
use crate::helpers::clock;

/// The clock of `poll` stands still during suspend: no nap is longer than this.
const LONGEST_NAP_MILLIS: u16 = 100;

pub(super) fn run() -> ExitCode {
    match supervise() {
        Ok(()) => Exit::Done.code(),
        Err(_) => Exit::Broken.code(),
    }
}

fn supervise() -> io::Result<()> {
    // Out of reach of whatever signals the terminal, or the group of `fencelock`, are sent.
    setsid()?;
    SigSet::all().thread_block()?;
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_name(c"fencelock-super")?;
    std::env::set_current_dir("/")?;
    say("ready")?;

    let mut watch = Watch::default();
    let mut unread = Vec::new();
    while !watch.done {
        if watch.is_over(clock::now()) {
            // The line first: who sees the group gone finds the reason.
            let told = say("killed");
            watch.kill();
            told?;
        }
        let stdin = io::stdin();
        let mut pipe = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut pipe, watch.nap(clock::now())) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0; 512];
        match read(stdin.as_fd(), &mut buffer) {
            Ok(0) => {
                watch.kill();
                break;
            }
            Ok(count) => unread.extend_from_slice(&buffer[..count]),
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<_> = unread.drain(..=end).collect();
            if watch.hear(&String::from_utf8_lossy(&line)) {
                say("watching")?;
            }
        }
    }
    Ok(())
}

fn say(word: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{word}")?;
    out.flush()
}

#[derive(Debug, Default)]
struct Watch {
    group: Option<Pid>,
    until: Option<Duration>,
    done: bool,
}

impl Watch {
    /// Takes a line; `true` when it wants an answer.
    fn hear(&mut self, line: &str) -> bool {
        let (word, number) = line
            .trim_end()
            .split_once(' ')
            .unwrap_or((line.trim_end(), ""));
        match word {
            "group" => {
                // 0 and 1 would be everybody.
                let group = number.parse().ok().filter(|group| *group > 1);
                self.group = group.map(Pid::from_raw);
                self.group.is_some()
            }
            "until" => {
                self.until = number.parse().ok().map(Duration::from_nanos);
                false
            }
            "done" => {
                self.done = true;
                false
            }
            _ => false,
        }
    }

    fn is_over(&self, now: Duration) -> bool {
        self.group.is_some() && self.until.is_some_and(|until| until <= now)
    }

    fn nap(&self, now: Duration) -> PollTimeout {
        match (self.group, self.until) {
            (Some(_), Some(until)) => {
                let left = until.saturating_sub(now).as_millis();
                // A nap that ends too early would be followed by many of no length.
                let left = u16::try_from(left).unwrap_or(u16::MAX).saturating_add(1);
                left.min(LONGEST_NAP_MILLIS).into()
            }
            _ => PollTimeout::NONE,
        }
    }

    /// Kills the group, once: later its number may be another's.
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // Gone already is fine, and a group that may not be killed is out of reach.
            killpg(group, Signal::SIGKILL).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_over_when_its_time_is_and_not_before() {
        let mut watch = Watch::default();
        assert!(!watch.hear("until 1000\n"));
        assert!(!watch.is_over(Duration::from_secs(1)), "there is no group");
        assert!(watch.hear("group 77\n"));
        assert!(watch.is_over(Duration::from_nanos(1000)));
        assert!(!watch.is_over(Duration::from_nanos(999)));
        watch.hear("until 2000\n");
        assert!(!watch.is_over(Duration::from_nanos(1000)));
        watch.hear("done\n");
        assert!(watch.done);
    }

    #[test]
    fn groups_that_would_be_everybody_are_not_taken() {
        for line in [
            "group 0\n",
            "group 1\n",
            "group -5\n",
            "group\n",
            "group x\n",
        ] {
            let mut watch = Watch::default();
            assert!(!watch.hear(line), "{line:?}");
            assert_eq!(watch.group, None);
        }
    }
}
