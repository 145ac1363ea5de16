//! Where etcd's programs are: named, installed, or unpacked from the distribution's packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

use crate::packages;

/// The variable that names etcd's program.
const VARIABLE: &str = "ETCD_BIN";

/// etcd's server and its command line client.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// `etcd`.
    pub(crate) server: PathBuf,
    /// `etcdctl`.
    pub(crate) client: PathBuf,
    /// Whether the server can leave out to wait for the disk.
    pub(crate) can_leave_out_fsync: bool,
}

impl Programs {
    /// Looks in `ETCD_BIN`, then in `PATH`, then takes the distribution's packages. What was found
    /// once, or not, stays so for this process.
    pub(crate) fn find() -> Result<Self> {
        static FOUND: OnceLock<Result<Programs, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| Self::look().map_err(|error| format!("{error:#}")));
        found.clone().map_err(|error| anyhow!(error))
    }

    fn look() -> Result<Self> {
        if let Some(named) = std::env::var_os(VARIABLE) {
            return Self::of(named.into()).context("ETCD_BIN names no etcd that runs");
        }
        if let Some(installed) = in_path("etcd") {
            return Self::of(installed).context("the etcd in PATH does not run");
        }
        packages::etcd().and_then(Self::of).context(
            "there is no etcd: name one by ETCD_BIN, install one into PATH, or let apt-get fetch \
             the packages etcd-server and etcd-client",
        )
    }

    fn of(server: PathBuf) -> Result<Self> {
        let help = Command::new(&server)
            .arg("--help")
            .output()
            .with_context(|| format!("{} does not start", server.display()))?;
        ensure!(help.status.success(), "it answers {}", help.status);
        let words = [help.stdout, help.stderr].concat();
        Ok(Self {
            client: client_of(&server),
            server,
            can_leave_out_fsync: String::from_utf8_lossy(&words).contains("--unsafe-no-fsync"),
        })
    }
}

/// The client beside the server, else whichever the system finds.
fn client_of(server: &Path) -> PathBuf {
    let beside = server.with_file_name("etcdctl");
    if beside.is_file() {
        beside
    } else {
        PathBuf::from("etcdctl")
    }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}
