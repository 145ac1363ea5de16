//! Looking for programs.

use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Result, anyhow};

/// What is looked for once, and found or missed for good.
pub(crate) fn once<T: Clone>(
    found: &OnceLock<Result<T, String>>,
    look: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let found = found.get_or_init(|| look().map_err(|error| format!("{error:#}")));
    found.clone().map_err(|error| anyhow!(error))
}

/// The installed program of this name.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}
