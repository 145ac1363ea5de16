//! The one table of exit statuses.

use std::process::ExitCode;

/// How `fencelock` ends.
///
/// The numbers of `sysexits.h` are used where they fit, so that they are not those that commands
/// usually end with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    Done,
    Finding,
    Usage,
    Unreachable,
    Broken,
    Exhausted,
    Busy,
    Incompatible,
    Denied,
    TimedOut,
    Lost,
    Unknown,
    FloorViolated,
    NotHeld,
    NotExecutable,
    NotFound,
    /// As the command that `run` ran.
    Command(u8),
}

/// Status, word for machines, meaning.
const TABLE: &[(Exit, u8, &str, &str)] = &[
    (Exit::Done, 0, "done", "done"),
    (
        Exit::Finding,
        1,
        "finding",
        "the answer is no, or there is something to be mended",
    ),
    (
        Exit::Usage,
        64,
        "usage",
        "what was typed or configured makes no sense",
    ),
    (
        Exit::Unreachable,
        69,
        "unreachable",
        "the store did not answer",
    ),
    (
        Exit::Broken,
        70,
        "broken",
        "something that should not happen; please report it",
    ),
    (Exit::Exhausted, 73, "exhausted", "the store is full"),
    (
        Exit::Busy,
        75,
        "busy",
        "someone else has the lock, and --wait 0 was given",
    ),
    (
        Exit::Incompatible,
        76,
        "incompatible",
        "the store's schema, format or version is not spoken",
    ),
    (Exit::Denied, 77, "denied", "the store refuses this user"),
    (
        Exit::TimedOut,
        79,
        "timed_out",
        "the lock was not granted within --wait",
    ),
    (
        Exit::Lost,
        80,
        "lost",
        "the lock was lost; the command was stopped before",
    ),
    (
        Exit::Unknown,
        81,
        "unknown",
        "no answer: it may have happened or not",
    ),
    (
        Exit::FloorViolated,
        82,
        "floor_violated",
        "the store would have handed out an old token",
    ),
    (
        Exit::NotHeld,
        83,
        "not_held",
        "the grant that was named does not stand; nothing was changed",
    ),
    (
        Exit::NotExecutable,
        126,
        "not_executable",
        "the command cannot be executed",
    ),
    (Exit::NotFound, 127, "not_found", "there is no such command"),
];

impl Exit {
    /// The status as a number.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Command(status) => status,
            own => own.row().map_or(70, |(_, status, _, _)| *status),
        }
    }

    /// The status as a word, for machines.
    pub(crate) fn word(self) -> &'static str {
        self.row().map_or("command", |(_, _, word, _)| word)
    }

    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.status())
    }

    fn row(self) -> Option<&'static (Self, u8, &'static str, &'static str)> {
        TABLE.iter().find(|(exit, ..)| *exit == self)
    }
}

/// The table, for `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from("Exit status:\n");
    for (_, status, _, meaning) in TABLE {
        text.push_str(&format!("  {status:>3}  {meaning}\n"));
    }
    text.push_str("`run` ends as its command does; 128 + N when signal N ended it.");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn statuses_and_words_are_distinct_and_leave_signals_alone() {
        let statuses: BTreeSet<_> = TABLE.iter().map(|row| row.1).collect();
        let words: BTreeSet<_> = TABLE.iter().map(|row| row.2).collect();
        assert_eq!((statuses.len(), words.len()), (TABLE.len(), TABLE.len()));
        assert!(statuses.iter().all(|status| *status < 128));
    }

    #[test]
    fn every_way_to_end_has_a_row() {
        for exit in [
            Exit::Done,
            Exit::Finding,
            Exit::Usage,
            Exit::Unreachable,
            Exit::Broken,
            Exit::Exhausted,
            Exit::Busy,
            Exit::Incompatible,
            Exit::Denied,
            Exit::TimedOut,
            Exit::Lost,
            Exit::Unknown,
            Exit::FloorViolated,
            Exit::NotHeld,
            Exit::NotExecutable,
            Exit::NotFound,
        ] {
            assert!(exit.row().is_some(), "{exit:?}");
        }
        assert_eq!(Exit::Command(7).status(), 7);
    }
}
