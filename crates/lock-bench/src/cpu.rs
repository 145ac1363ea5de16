//! The processor time that processes have used.

use std::fs;
use std::time::Duration;

/// A process whose processor time is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn own() -> Self {
        Self(std::process::id())
    }

    pub(crate) const fn of(id: u32) -> Self {
        Self(id)
    }

    /// What it has used so far, of all processors together; `None` on systems that do not tell as
    /// Linux does.
    pub(crate) fn used(self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        used(&stat, rustix::param::clock_ticks_per_second())
    }
}

fn used(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    // The name of the program is in parentheses and may have any other sign in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11);
    let user: u64 = ticks.next()?.parse().ok()?;
    let system: u64 = ticks.next()?.parse().ok()?;
    let nanos_per_tick = 1_000_000_000_u64.checked_div(ticks_per_second)?;
    Some(Duration::from_nanos((user + system) * nanos_per_tick))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added_whatever_the_program_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 9 9 20 0 4 0 100";
        assert_eq!(used(stat, 100), Some(Duration::from_millis(1750)));
        assert_eq!(used("", 100), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_used_some() {
        assert!(Process::own().used().is_some());
    }
}
