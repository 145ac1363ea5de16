//! A folder of one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::process::until;

/// How long whatever should happen at once may take on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Deleted at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("run-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// The whole lines of a file that a command writes, once there is one.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let path = self.file(name);
        until(PATIENCE, &format!("a line in {name}"), || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let whole = text.ends_with('\n');
            whole.then(|| text.lines().map(str::to_owned).collect())
        })
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        self.lines(name)[0].trim().parse().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
