use std::fs::File;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The terminal that this process is controlled by: its keys reach one process group.
#[derive(Debug)]
pub(super) struct Terminal {
    tty: File,
    own: Pid,
}

impl Terminal {
    /// `None` where there is none, as under cron.
    pub(super) fn of_this_process() -> Option<Self> {
        Some(Self {
            tty: File::open("/dev/tty").ok()?,
            own: getpgrp(),
        })
    }

    /// Whether its keys reach this process.
    pub(super) fn is_ours(&self) -> bool {
        self.is_of(self.own)
    }

    /// Whether its keys reach this group.
    pub(super) fn is_of(&self, group: Pid) -> bool {
        tcgetpgrp(&self.tty) == Ok(group)
    }

    /// Lets its keys reach this group.
    pub(super) fn give_to(&self, group: Pid) {
        let mut stops = SigSet::empty();
        stops.add(Signal::SIGTTOU);
        // Whoever is in the background and has not blocked the signal is stopped by it.
        if stops.thread_block().is_ok() {
            // A terminal that has hung up is no reason to stop.
            tcsetpgrp(&self.tty, group).ok();
            stops.thread_unblock().ok();
        }
    }

    /// Takes it back from this group, if it has it.
    pub(super) fn take_back_from(&self, group: Pid) {
        if self.is_of(group) {
            self.give_to(self.own);
        }
    }
}
