//! What compilers and linters cannot see. Each check reads a [`Tree`] and names what it found, so
//! that a test can plant the fault that the check is there for.

mod async_docs;
mod clauses;
mod deletes;
mod dependencies;
mod documents;
mod length;
mod markdown;
mod names;
mod select;
mod stubs;
mod tokens;
mod versions;
mod words;

use std::fmt;

use anyhow::ensure;

use crate::steps::Steps;
use crate::tree::Tree;

/// Something that a check found.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Complaint {
    path: String,
    line: usize,
    what: String,
}

type Check = fn(&Tree) -> Vec<Complaint>;

const CHECKS: &[(&str, Check)] = &[
    ("dependency direction", dependencies::check),
    ("documentation of async functions", async_docs::check),
    ("documents", documents::check),
    ("names in documents", names::check),
    ("versions", versions::check),
    ("clauses of the contract", clauses::check),
    ("stubs and skipped tests", stubs::check),
    ("deletes of the etcd store", deletes::check),
    ("biased select", select::check),
    ("file length", length::check),
    ("words", words::check),
];

/// Runs every check over the files of the workspace.
pub(crate) fn run(steps: &mut Steps) {
    let root = steps.root().to_owned();
    steps.check("tidy", "cargo xtask tidy", || {
        let tree = Tree::read(&root)?;
        let mut found = 0;
        for (name, check) in CHECKS {
            let mut complaints = check(&tree);
            complaints.sort();
            found += complaints.len();
            for complaint in complaints {
                println!("   {name}: {complaint}");
            }
        }
        ensure!(found == 0, "{found} found");
        Ok(())
    });
}

impl Complaint {
    fn new(path: impl Into<String>, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}
