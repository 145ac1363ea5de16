//! A clock of a server's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use super::Postgres;
use crate::packages::Bundle;
use crate::unprivileged;
use crate::user::User;

const FAKETIME: Bundle = Bundle {
    name: "faketime",
    packages: &["libfaketime"],
    with_dependencies: false,
    find: |folder| Some(library_below(folder)),
};

/// A way to step a clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// To a later time.
    Forward,
    /// To an earlier time.
    Back,
}

/// The clock on the wall as one server sees it.
#[derive(Debug)]
pub(super) struct FakeClock {
    library: PathBuf,
    /// Where the server reads how far it is ahead.
    file: PathBuf,
    ahead: Mutex<f64>,
}

impl FakeClock {
    /// One that is right.
    pub(super) fn new(folder: &Path, user: Option<User>) -> Result<Self> {
        let installed = library_below(Path::new("/"));
        let found = if installed.is_file() {
            installed
        } else {
            let unpacked = FAKETIME.unpack();
            unpacked.context("there is no libfaketime")?.program
        };
        // A library that the user cannot read would be left out without an error.
        let library = folder.join("libfaketime.so");
        fs::copy(found, &library)?;
        unprivileged::give_to(user, &library)?;
        let clock = Self {
            library,
            file: folder.join("clock"),
            ahead: Mutex::default(),
        };
        clock.step(0.0)?;
        Ok(clock)
    }

    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        let settings = [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file)),
            // A step shows at once.
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            // Deadlines are no matter of the clock on the wall.
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
            // Memory that the processes share would outlive them.
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ];
        settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn step(&self, seconds: f64) -> Result<()> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead += seconds;
        // Another file in its place, so that nobody reads half of it.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{:+.3}", *ahead))?;
        Ok(fs::rename(&new, &self.file)?)
    }
}

impl Postgres {
    /// Steps the server's clock on the wall while it runs. Steps add up.
    ///
    /// # Errors
    ///
    /// When the server was not started with a [clock of its
    /// own](crate::PostgresBuilder::faketime).
    pub fn step_clock(&self, by: Duration, step: Step) -> Result<()> {
        let clock = self.clock.as_ref();
        let clock = clock.context("the server has no clock of its own")?;
        clock.step(match step {
            Step::Forward => by.as_secs_f64(),
            Step::Back => -by.as_secs_f64(),
        })
    }
}

fn library_below(root: &Path) -> PathBuf {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    root.join("usr/lib")
        .join(machine)
        .join("faketime/libfaketime.so.1")
}
