//! The user whom a server runs as that refuses to run as root.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::user::User;

/// Whom root becomes: whoever of them exists.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// One without rights; `None` where this process has none either.
pub(crate) fn user() -> Result<Option<User>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let found = NAMES.into_iter().find_map(|name| named(name, &users));
    let found = found.context("there is no user postgres or nobody to run Postgres as")?;
    Ok(Some(found))
}

/// Hands a file or a folder over to this user, if there is one.
pub(crate) fn give_to(user: Option<User>, path: &Path) -> Result<()> {
    if let Some(User { uid, gid }) = user {
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))
            .with_context(|| format!("{} cannot be handed over", path.display()))?;
    }
    Ok(())
}

/// The fields of a line are name, password, number, group, and what is of no interest.
fn named(name: &str, users: &str) -> Option<User> {
    users.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        let [found, _, uid, gid, ..] = fields[..] else {
            return None;
        };
        let uid = uid.parse().ok().filter(|_| found == name)?;
        let gid = gid.parse().ok()?;
        Some(User { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users = "root:x:0:0:root:/:/bin/sh\npostgres2:x:7:8::/:\npostgres:x:101:104:,,,:/:\n";
        let found = named("postgres", users);
        assert_eq!(found, Some(User { uid: 101, gid: 104 }));
        assert_eq!(named("nobody", users), None);
    }

    #[test]
    fn a_user_comes_back_from_text() {
        let user = User { uid: 101, gid: 104 };
        assert_eq!(user.to_string().parse(), Ok(user));
        assert!("101".parse::<User>().is_err());
        assert!("-".parse::<User>().is_err());
    }
}
