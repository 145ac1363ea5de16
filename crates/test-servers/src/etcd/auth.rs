//! A server on which not everybody may do everything.

use anyhow::Result;

use super::Etcd;

/// Of the user `root`, as whom `ctl` asks once authentication is on.
const ROOT: &str = "root:root";

impl Etcd {
    /// Turns authentication on, with one user beside `root`, who may read and write what begins with
    /// `prefix` and nothing else. From then on [`ctl`](Self::ctl) asks as `root`.
    ///
    /// # Errors
    ///
    /// When `etcdctl` fails: no cluster does this twice.
    pub fn limit_to(&mut self, user: &str, password: &str, prefix: &str) -> Result<()> {
        let with_password = format!("{user}:{password}");
        for command in [
            &["user", "add", ROOT][..],
            &["user", "grant-role", "root", "root"],
            &["user", "add", &with_password],
            &["role", "add", user],
            &[
                "role",
                "grant-permission",
                user,
                "--prefix=true",
                "readwrite",
                prefix,
            ],
            &["user", "grant-role", user, user],
            &["auth", "enable"],
        ] {
            self.ctl(command)?;
        }
        self.ctl_options.push(format!("--user={ROOT}"));
        Ok(())
    }
}
