//! Where etcd's programs are, and that which stalls a disk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::packages::{Bundle, Unpacked};
use crate::programs::{in_path, once};

/// The variable that names etcd's program.
const VARIABLE: &str = "ETCD_BIN";

const ETCD: Bundle = Bundle {
    name: "etcd",
    packages: &["etcd-server", "etcd-client"],
    with_dependencies: false,
    find: |folder| Some(folder.join("usr/bin/etcd")),
};
const STRACE: Bundle = Bundle {
    name: "strace",
    packages: &["strace", "libunwind8"],
    with_dependencies: false,
    find: |folder| Some(folder.join("usr/bin/strace")),
};

/// etcd's server and its command line client.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// `etcd`.
    pub(super) server: PathBuf,
    /// `etcdctl`.
    pub(super) client: PathBuf,
    /// Whether the server can leave out to wait for the disk.
    pub(super) can_leave_out_fsync: bool,
}

impl Programs {
    /// Looks in `ETCD_BIN`, then in `PATH`, then takes the distribution's packages. What was found
    /// once, or not, stays so for this process.
    pub(super) fn find() -> Result<Self> {
        static FOUND: OnceLock<Result<Programs, String>> = OnceLock::new();
        once(&FOUND, Self::look)
    }

    fn look() -> Result<Self> {
        if let Some(named) = std::env::var_os(VARIABLE) {
            return Self::of(named.into()).context("the etcd that ETCD_BIN names will not do");
        }
        if let Some(installed) = in_path("etcd") {
            return Self::of(installed).context("the etcd in PATH will not do");
        }
        let unpacked = ETCD.unpack();
        unpacked.and_then(|etcd| Self::of(etcd.program)).context(
            "there is no etcd: name one by ETCD_BIN, install one into PATH, or let apt-get fetch \
             the packages etcd-server and etcd-client",
        )
    }

    /// This server, and the client beside it or in `PATH`.
    pub(super) fn of(server: PathBuf) -> Result<Self> {
        let help = Command::new(&server)
            .arg("--help")
            .output()
            .with_context(|| format!("{} does not start", server.display()))?;
        ensure!(help.status.success(), "it answers {}", help.status);
        let words = [help.stdout, help.stderr].concat();
        Ok(Self {
            client: client_of(&server, in_path("etcdctl"))?,
            server,
            can_leave_out_fsync: String::from_utf8_lossy(&words).contains("--unsafe-no-fsync"),
        })
    }
}

/// The client beside the server, else the installed one. Not every test needs it; without it some
/// would fail and others not.
fn client_of(server: &Path, installed: Option<PathBuf>) -> Result<PathBuf> {
    let beside = Some(server.with_file_name("etcdctl")).filter(|beside| beside.is_file());
    beside.or(installed).with_context(|| {
        format!(
            "its etcdctl is missing: it has to stand beside {} or in PATH",
            server.display()
        )
    })
}

/// A command that runs `strace`, which traces other processes.
///
/// # Errors
///
/// When there is none.
pub(super) fn strace() -> Result<Command> {
    static UNPACKED: OnceLock<Result<Unpacked, String>> = OnceLock::new();
    if let Some(installed) = in_path("strace") {
        return Ok(Command::new(installed));
    }
    let unpacked = once(&UNPACKED, || {
        STRACE.unpack().context(
            "there is no strace: install one into PATH, or let apt-get fetch the packages strace \
             and libunwind8",
        )
    })?;
    let mut command = Command::new(&unpacked.program);
    command.envs([unpacked.libraries()?]);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_beside_its_server_or_installed_or_missed_by_name() {
        let folder = crate::folder::private().unwrap();
        let server = folder.join("etcd");
        let missing = client_of(&server, None).unwrap_err().to_string();
        for words in ["etcdctl is missing", "beside", "or in PATH"] {
            assert!(missing.contains(words), "{missing}");
        }
        let installed = PathBuf::from("/usr/bin/etcdctl");
        let found = client_of(&server, Some(installed.clone())).unwrap();
        assert_eq!(found, installed);
        let beside = folder.join("etcdctl");
        std::fs::write(&beside, "").unwrap();
        assert_eq!(client_of(&server, Some(installed)).unwrap(), beside);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
