//! Where the programs of Postgres are.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::packages::Bundle;
use crate::programs::{in_path, once};

/// The variable that names the folder of the programs, or the server among them.
const VARIABLE: &str = "PG_BIN";
/// Where distributions keep the programs of each version.
const VERSIONS: &str = "usr/lib/postgresql";
/// Without these a folder will not do. Wrappers of distributions stand elsewhere.
const NEEDED: [&str; 4] = ["postgres", "initdb", "psql", "pg_basebackup"];

const POSTGRES: Bundle = Bundle {
    name: "postgres",
    packages: &["postgresql"],
    with_dependencies: true,
    find: |folder| Some(newest(&folder.join(VERSIONS))?.join("postgres")),
};

/// The programs of one version.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    /// What they need to find their libraries.
    environment: Vec<(String, String)>,
    /// The version, as the server names it.
    pub(super) version: String,
}

impl Programs {
    /// Looks in `PG_BIN`, in `PATH`, and where distributions keep them, then takes the packages of
    /// the distribution. What was found once, or not, stays so for this process.
    pub(super) fn find() -> Result<Self> {
        static FOUND: OnceLock<Result<Programs, String>> = OnceLock::new();
        once(&FOUND, Self::look)
    }

    fn look() -> Result<Self> {
        if let Some(named) = std::env::var_os(VARIABLE) {
            let named = PathBuf::from(named);
            let folder = if named.is_file() {
                folder_of(&named)
            } else {
                Some(named)
            };
            let folder = folder.context("PG_BIN names nothing")?;
            return Self::of(folder, Vec::new())
                .context("the Postgres that PG_BIN names will not do");
        }
        let in_path = in_path("postgres").and_then(|server| folder_of(&server));
        let in_path = in_path.filter(|folder| is_complete(folder));
        let root = Path::new("/");
        if let Some(installed) = in_path.or_else(|| newest(&root.join(VERSIONS))) {
            return Self::of(installed, Vec::new()).context("the installed Postgres will not do");
        }
        Self::unpacked().context(
            "there is no Postgres: name the folder of its programs by PG_BIN, install one, or let \
             apt-get fetch the package postgresql",
        )
    }

    fn unpacked() -> Result<Self> {
        let unpacked = POSTGRES.unpack()?;
        let folder = folder_of(&unpacked.program).context("the packages hold no programs")?;
        Self::of(folder, vec![unpacked.libraries()?])
    }

    fn of(folder: PathBuf, environment: Vec<(String, String)>) -> Result<Self> {
        ensure!(
            is_complete(&folder),
            "{} holds not all of {}",
            folder.display(),
            NEEDED.join(", ")
        );
        let mut programs = Self {
            folder,
            environment,
            version: String::new(),
        };
        let mut command = programs.command("postgres");
        let answer = command.arg("--version").output()?;
        ensure!(answer.status.success(), "it answers {}", answer.status);
        programs.version = String::from_utf8(answer.stdout)?.trim().to_owned();
        Ok(programs)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs one of them, without the settings of the test's own environment.
    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path(name));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").envs(self.environment.clone());
        command
    }

    pub(super) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}

fn is_complete(folder: &Path) -> bool {
    NEEDED.iter().all(|name| folder.join(name).is_file())
}

/// The folder that a program really stands in.
fn folder_of(program: &Path) -> Option<PathBuf> {
    Some(program.canonicalize().ok()?.parent()?.to_owned())
}

/// The programs of the newest version of those whose folders are named after them.
fn newest(versions: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(versions).into_iter().flatten().flatten();
    let folders = folders.map(|version| version.path());
    let complete = folders.filter(|version| is_complete(&version.join("bin")));
    let newest = complete.max_by_key(|version| {
        let name = version.file_name().and_then(OsStr::to_str);
        name.and_then(|name| name.split('.').next()?.parse::<u32>().ok())
    });
    newest.map(|version| version.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_found_that_has_all_programs() {
        let home = crate::folder::private().unwrap();
        for (version, programs) in [("9.6", 4), ("15", 4), ("16", 3)] {
            let folder = home.join(version).join("bin");
            fs::create_dir_all(&folder).unwrap();
            for program in &NEEDED[..programs] {
                fs::write(folder.join(program), "").unwrap();
            }
        }
        assert_eq!(newest(&home), Some(home.join("15/bin")));
        assert_eq!(newest(&home.join("15")), None);
        fs::remove_dir_all(&home).unwrap();
    }
}
