//! A server on a copy of another one's disk.

use std::fs;

use anyhow::Result;

use super::{Identity, Postgres};
use crate::folder;

/// What a copy must not have: it is told by them that it runs, or whom it follows.
const OWN: [&str; 3] = ["postmaster.pid", "standby.signal", "recovery.signal"];

impl Postgres {
    /// Starts another server on a copy of this one's disk, as a snapshot of a virtual machine's disk
    /// is: all of it at one moment. Unlike a backup that is restored, it takes itself for the former
    /// one and stays in its timeline.
    ///
    /// # Errors
    ///
    /// When the disk cannot be copied, or the server does not serve within half a minute.
    pub fn copy_folder(&self) -> Result<Self> {
        let identity = Identity {
            password: self.password.clone(),
            has_fake_clock: false,
        };
        Self::start_on(&self.programs, &identity, |copy| self.copy_data_to(copy))
    }

    fn copy_data_to(&self, copy: &Self) -> Result<()> {
        let runs = self.server.is_up();
        if runs {
            self.freeze()?;
        }
        let copied = folder::copy(&self.data(), &copy.data(), copy.user);
        if runs {
            self.thaw()?;
        }
        copied?;
        for name in OWN {
            let file = copy.data().join(name);
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        Ok(())
    }
}
