//! A failure as a file: its draws, and the bug that was planted, if any.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use lock_sim::bugs::Bug;
use serde_json::{Value, json};

use crate::options::named;

/// What it takes to play a failure again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TapeFile {
    pub(crate) draws: Vec<u64>,
    pub(crate) bug: Option<Bug>,
}

impl TapeFile {
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        }
        fs::write(path, self.to_text()).with_context(|| format!("{}", path.display()))
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        Self::of_text(&text).with_context(|| format!("{} is no tape", path.display()))
    }

    fn to_text(&self) -> String {
        let bug = self.bug.map(Bug::name);
        json!({ "bug": bug, "draws": self.draws }).to_string()
    }

    fn of_text(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        let draws = value["draws"].as_array().context("no draws in it")?;
        let draws = draws.iter().map(Value::as_u64);
        let draws: Option<Vec<_>> = draws.collect();
        Ok(Self {
            draws: draws.context("a draw is no whole number")?,
            bug: value["bug"].as_str().map(named).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use lock_sim::bugs::StoreBug;

    use super::*;

    #[test]
    fn a_tape_is_read_as_it_was_written() {
        for bug in [None, Some(Bug::Store(StoreBug::NeverSaysLost))] {
            let draws = vec![0, 7, u64::MAX];
            let file = TapeFile { draws, bug };
            assert_eq!(TapeFile::of_text(&file.to_text()).unwrap(), file);
        }
    }

    #[test]
    fn what_is_no_tape_is_refused() {
        for text in [
            "",
            "{}",
            "{\"draws\":[-1]}",
            "{\"draws\":[],\"bug\":\"no-such\"}",
        ] {
            assert!(TapeFile::of_text(text).is_err(), "{text}");
        }
    }
}
