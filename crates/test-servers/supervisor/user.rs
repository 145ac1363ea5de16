//! The user whom a server runs as, where that is not the one who started it. The library knows the
//! same.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::str::FromStr;

/// A user of the system and its group, by number; in text `UID:GID`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

impl FromStr for User {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once(':').and_then(|(uid, gid)| {
            Some(Self {
                uid: uid.parse().ok()?,
                gid: gid.parse().ok()?,
            })
        });
        numbers.ok_or("a user is UID:GID")
    }
}

/// Has a command run as this user, if there is one.
pub(crate) fn run_as(user: Option<User>, command: &mut Command) -> &mut Command {
    if let Some(User { uid, gid }) = user {
        command.uid(uid).gid(gid);
    }
    command
}
