use std::error::Error as _;
use std::io;

use fencelock::ErrorKind;
use fencelock::spi::Effect;

use crate::exit::Exit;

/// Why a command has no answer: what happened, why, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) what: String,
    /// What it came from, outermost first.
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
    broken_pipe: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            causes: Vec::new(),
            hint: None,
            broken_pipe: false,
        }
    }

    /// Says what to do about it, instead of what it said before.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Of a call that changes something: without a definite answer it may have happened.
    pub(crate) fn of_change(error: &fencelock::Error) -> Self {
        let failure = Self::of(error);
        if error.effect() == Effect::Unknown {
            Self {
                exit: Exit::Unknown,
                ..failure
            }
            .hint("it may have happened or not: look, then try again")
        } else {
            failure
        }
    }

    /// Of any other call.
    pub(crate) fn of(error: &fencelock::Error) -> Self {
        let (exit, hint) = match error.kind() {
            ErrorKind::Denied => (
                Exit::Denied,
                "check user and password, and the rights that the user has there",
            ),
            ErrorKind::Exhausted => (Exit::Exhausted, "make room in the store"),
            ErrorKind::FloorViolated => (
                Exit::FloorViolated,
                "the store may have been restored from an older copy: `fencelock recover`",
            ),
            ErrorKind::Incompatible => (
                Exit::Incompatible,
                "`fencelock doctor` tells what does not fit, `fencelock migrate` makes the schema",
            ),
            ErrorKind::InvalidRequest => (Exit::Usage, "see `fencelock --help`"),
            ErrorKind::Lost => (
                Exit::Lost,
                "`fencelock revocations` tells whether it was revoked",
            ),
            ErrorKind::TimedOut => (Exit::TimedOut, "wait longer with --wait"),
            ErrorKind::NotLeader | ErrorKind::ShuttingDown | ErrorKind::Unavailable => (
                Exit::Unreachable,
                "`fencelock doctor` tells what can be reached",
            ),
            _ => (Exit::Broken, "please report it, with what was typed"),
        };
        let mut failure = Self::new(exit, error.to_string()).hint(hint);
        let mut cause = error.source();
        while let Some(error) = cause {
            failure.causes.push(error.to_string());
            cause = error.source();
        }
        failure
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }
}

impl From<fencelock::Error> for Failure {
    fn from(error: fencelock::Error) -> Self {
        Self::of(&error)
    }
}

impl From<fencelock::spi::Invalid> for Failure {
    fn from(invalid: fencelock::spi::Invalid) -> Self {
        Self::new(Exit::Usage, invalid.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::new(Exit::Broken, error.to_string())
        }
    }
}
