//! Backups of a server, and going back to one.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::Etcd;

/// A backup of a server's data, by [`Etcd::save`]. It goes with the server.
#[derive(Clone, Debug)]
pub struct Snapshot(PathBuf);

/// Which cluster a restored server takes itself for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RestoredAs {
    /// The one that was saved: its ids are the same.
    ItsFormerSelf,
    /// A new one, as etcd advises: its ids are others.
    AnotherCluster,
}

impl Etcd {
    /// Saves the data of a single server.
    ///
    /// # Errors
    ///
    /// When `etcdctl` fails.
    pub fn save(&self) -> Result<Snapshot> {
        let [member] = &*self.members else {
            anyhow::bail!("only a single server is saved");
        };
        let folder = member.server.folder();
        let number = fs::read_dir(folder)?.count();
        let file = folder.join(format!("snapshot-{number}"));
        self.ctl(&["snapshot", "save", &file.to_string_lossy()])?;
        Ok(Snapshot(file))
    }

    /// Kills the server if it is up, and starts it with the data of a backup, on its former ports.
    /// What happened since the backup is lost.
    ///
    /// # Errors
    ///
    /// When `etcdctl` fails, or the server does not serve within half a minute.
    pub fn restore(&mut self, snapshot: &Snapshot, identity: RestoredAs) -> Result<()> {
        let Snapshot(file) = snapshot;
        if self.members[0].server.is_up() {
            self.kill(0)?;
        }
        let member = &self.members[0];
        let folder = member.server.folder();
        let data = folder.join("data");
        fs::remove_dir_all(&data).context("the server has no data to replace")?;
        let home = folder.parent().context("the server has no folder")?;
        let token = match identity {
            RestoredAs::ItsFormerSelf => home.display().to_string(),
            RestoredAs::AnotherCluster => format!("{} restored", home.display()),
        };
        let peer = format!("http://127.0.0.1:{}", member.ports.peer);
        self.ctl(&[
            "snapshot",
            "restore",
            &file.to_string_lossy(),
            "--name=m0",
            &format!("--data-dir={}", data.display()),
            &format!("--initial-cluster=m0={peer}"),
            &format!("--initial-advertise-peer-urls={peer}"),
            &format!("--initial-cluster-token={token}"),
        ])?;
        ensure!(data.is_dir(), "etcdctl restored nothing");
        self.restart(0)
    }
}
