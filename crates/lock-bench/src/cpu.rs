//! The processor time that processes have used.

use std::fs;
use std::time::Duration;

/// A process whose processor time is asked for, with or without those that it has begotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    id: u32,
    with_children: bool,
}

/// What the system tells of a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stat {
    parent: u32,
    own: u64,
    /// Of its children that have ended.
    ended: u64,
}

impl Process {
    pub(crate) fn own() -> Self {
        Self::of(std::process::id())
    }

    pub(crate) const fn of(id: u32) -> Self {
        let with_children = false;
        Self { id, with_children }
    }

    /// With its children, those included that end meanwhile.
    pub(crate) const fn with_children(id: u32) -> Self {
        let with_children = true;
        Self { id, with_children }
    }

    /// What it has used so far, of all processors together; `None` on systems that do not tell as
    /// Linux does.
    pub(crate) fn used(self) -> Option<Duration> {
        let own = stat_of(&self.id.to_string())?;
        let ticks = match self.with_children {
            false => own.own,
            true => own.own + own.ended + self.used_by_children()?,
        };
        duration(ticks, rustix::param::clock_ticks_per_second())
    }

    fn used_by_children(self) -> Option<u64> {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let names = all.map(|entry| entry.file_name());
        let stats = names.filter_map(|name| stat_of(name.to_str()?));
        Some(
            stats
                .filter(|stat| stat.parent == self.id)
                .map(|stat| stat.own)
                .sum(),
        )
    }
}

fn stat_of(name: &str) -> Option<Stat> {
    name.parse::<u32>().ok()?;
    parse(&fs::read_to_string(format!("/proc/{name}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Stat> {
    // The name of the program is in parentheses and may have any other sign in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let mut ticks = fields.skip(9).map(str::parse::<u64>);
    let mut next = || ticks.next()?.ok();
    let (user, system, ended_user, ended_system) = (next()?, next()?, next()?, next()?);
    Some(Stat {
        parent,
        own: user + system,
        ended: ended_user + ended_system,
    })
}

fn duration(ticks: u64, ticks_per_second: u64) -> Option<Duration> {
    let nanos_per_tick = 1_000_000_000_u64.checked_div(ticks_per_second)?;
    Some(Duration::from_nanos(ticks * nanos_per_tick))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn user_and_system_time_are_added_whatever_the_program_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 9 8 20 0 4 0 100";
        let expected = Stat {
            parent: 1,
            own: 175,
            ended: 17,
        };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(duration(175, 100), Some(Duration::from_millis(1750)));
        assert_eq!(parse(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_used_some() {
        assert!(Process::own().used().is_some());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_child_uses_is_counted_while_it_runs_and_after_it_has_ended() {
        let busy = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; echo; read line";
        let mut shell = Command::new("sh")
            .args(["-c", busy])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let id = std::process::id();
        let mut told = [0];
        let mut output = shell.stdout.take().unwrap();
        output.read_exact(&mut told).unwrap();
        let running = Process::with_children(id).used_by_children().unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        let ended = stat_of(&id.to_string()).unwrap().ended;
        assert!(running > 0 && ended >= running, "{running}, {ended}");
    }
}
