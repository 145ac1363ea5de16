//! The files of the workspace.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use toml::Table;
use walkdir::WalkDir;

/// The files of the workspace by their path from its root, with `/` between folders.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads everything but what is built and what git keeps for itself.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let entries = WalkDir::new(root).into_iter().filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            let built = entry.depth() == 1 && (name == "target" || name.starts_with("target-"));
            name != ".git" && !built
        });
        let mut files = BTreeMap::new();
        for entry in entries {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let below = entry.path().strip_prefix(root)?;
            let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
            let bytes = std::fs::read(entry.path())
                .with_context(|| format!("{} cannot be read", below.display()))?;
            files.insert(
                parts.join("/"),
                String::from_utf8_lossy(&bytes).into_owned(),
            );
        }
        Ok(Self { files })
    }

    /// Every file with its text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust files below a folder.
    pub(crate) fn rust_below(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files()
            .filter(move |(path, _)| path.starts_with(folder) && path.ends_with(".rs"))
    }

    /// The documents for people.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".md"))
    }

    /// The manifests of the crates, by the names of their folders.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&str, Result<Table>)> {
        self.files().filter_map(|(path, text)| {
            let folder = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            let manifest = text
                .parse()
                .with_context(|| format!("{path} is no manifest"));
            Some((folder, manifest))
        })
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether this is a file, or a folder with a file in it. A part `*` stands for any one.
    pub(crate) fn has(&self, wanted: &str) -> bool {
        let wanted: Vec<_> = wanted.trim_end_matches('/').split('/').collect();
        self.files.keys().any(|path| {
            let parts: Vec<_> = path.split('/').collect();
            parts.len() >= wanted.len()
                && parts
                    .iter()
                    .zip(&wanted)
                    .all(|(part, wanted)| *wanted == "*" || part == wanted)
        })
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        Self {
            files: files
                .map(|(path, text)| (path.to_owned(), text.to_owned()))
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_files_folders_or_have_a_wildcard() {
        let tree = Tree::from([("crates/a/src/lib.rs", "")]);
        for there in ["crates", "crates/a/", "crates/a/src/lib.rs", "crates/*/src"] {
            assert!(tree.has(there), "{there}");
        }
        for missing in [
            "crate",
            "crates/b",
            "crates/a/src/lib.rs/x",
            "crates/*/tests",
        ] {
            assert!(!tree.has(missing), "{missing}");
        }
    }

    #[test]
    fn this_workspace_can_be_read() {
        let tree = Tree::read(&crate::root()).unwrap();
        assert!(tree.has("xtask/src/main.rs") && !tree.has("target") && !tree.has(".git"));
    }
}
