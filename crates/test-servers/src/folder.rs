//! Folders that nobody else has, and one that is kept.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use crate::unprivileged;
use crate::user::User;

/// Makes a new folder that only this user can enter.
pub(crate) fn private() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-servers-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}

/// Makes a new folder that only that user can enter, with one in it, which is returned.
pub(crate) fn private_to(user: Option<User>, name: &str) -> Result<PathBuf> {
    let home = private()?;
    let folder = home.join(name);
    fs::create_dir(&folder)?;
    for folder in [&home, &folder] {
        unprivileged::give_to(user, folder)?;
    }
    Ok(folder)
}

/// Where that is kept which the next run of the tests need not make again, below the folder that
/// cargo builds in and marks as such.
pub(crate) fn kept() -> PathBuf {
    let built = Path::new(env!("OUT_DIR"));
    let target = built
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.unwrap_or(built).join("test-servers")
}

/// Copies a folder with all files and folders that are in it and hands the copy over to a user. What
/// disappears meanwhile is left out.
pub(crate) fn copy(from: &Path, to: &Path, owner: Option<User>) -> Result<()> {
    let copied = DirBuilder::new().mode(0o700).create(to);
    copied.with_context(|| format!("{} cannot be made", to.display()))?;
    unprivileged::give_to(owner, to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&from, &to, owner)?;
        } else if kind.is_file() {
            match fs::copy(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                copied => copied.with_context(|| from.display().to_string())?,
            };
            unprivileged::give_to(owner, &to)?;
        }
    }
    Ok(())
}
