//! A disk that stalls: a tracer holds up the member's writes to its log while everything else in
//! the process goes on.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock;
use crate::etcd::programs;

/// For how long the tracer holds up each call; longer than any test.
const HOLD_UP: &str = "inject=fdatasync,fsync:delay_enter=600000000"; // microseconds
/// How long the tracer may take to get hold of the process.
const ATTACH_LIMIT: Duration = Duration::from_secs(20);

/// Holds up a member's writes to its log until it is dropped.
#[derive(Debug)]
pub(super) struct Stall {
    tracer: Child,
}

impl Stall {
    /// Gets hold of a member's process.
    ///
    /// # Errors
    ///
    /// When there is no `strace`, or the system lets no process trace another.
    pub(super) fn begin(pid: Pid, folder: &Path) -> Result<Self> {
        let words = folder.join("tracer");
        let mut command = programs::strace()?;
        command
            .args([
                "-f",
                "-e",
                "trace=fdatasync,fsync",
                "-e",
                HOLD_UP,
                "-o",
                "/dev/null",
            ])
            .args(["-p", &pid.as_raw_nonzero().to_string()]);
        for log in logs(folder)? {
            command.arg("-P").arg(log);
        }
        let mut tracer = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&words)?)
            .spawn()
            .context("strace does not start")?;
        let attached = clock::poll(ATTACH_LIMIT, || {
            let ended = tracer.try_wait().is_ok_and(|status| status.is_some());
            let says = fs::read_to_string(&words).unwrap_or_default();
            match (ended, says.contains("attached")) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            }
        });
        let stall = Self { tracer };
        if attached != Some(true) {
            let says = fs::read_to_string(&words).unwrap_or_default();
            bail!("strace cannot trace the server: {}", says.trim());
        }
        Ok(stall)
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        // It lets go of the process. Where that has ended, so has the tracer.
        let pid = i32::try_from(self.tracer.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            drop(kill_process(pid, Signal::TERM).map_err(io::Error::from));
        }
        drop(self.tracer.wait());
    }
}

/// The files of the member's log.
fn logs(folder: &Path) -> Result<Vec<PathBuf>> {
    let home = folder.join("data").join("member").join("wal");
    let files: io::Result<Vec<_>> = fs::read_dir(&home)?.map(|file| Ok(file?.path())).collect();
    let mut files = files?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "wal"));
    ensure!(!files.is_empty(), "there is no log in {}", home.display());
    Ok(files)
}
