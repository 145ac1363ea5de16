//! Documents name only what exists: files, commands, and headings that they link to.

use clap::CommandFactory;

use crate::Cli;
use crate::tidy::Complaint;
use crate::tidy::markdown::{Document, Link};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.documents() {
        let document = Document::parse(text);
        let mut complain = |line: usize, what: String| {
            complaints.push(Complaint::new(path, line, what));
        };
        for link in &document.links {
            if let Some(what) = broken(tree, path, link) {
                complain(link.line, what);
            }
        }
        for (line, code) in &document.codes {
            if is_path(tree, code) && !tree.has(code) {
                complain(*line, format!("`{code}` is no file or folder"));
            }
        }
        for (line, text) in (1..).zip(text.lines()) {
            for what in unknown_commands(tree, text) {
                complain(line, what);
            }
        }
    }
    complaints
}

fn broken(tree: &Tree, from: &str, link: &Link) -> Option<String> {
    let target = link.target.as_str();
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => from.to_owned(),
        _ => beside(from, file),
    };
    if !tree.has(&path) {
        return Some(format!("the link to {target} leads nowhere"));
    }
    let headings = Document::parse(tree.text(&path).unwrap_or_default()).headings;
    let found = heading.is_empty() || headings.iter().any(|known| known == heading);
    (!found).then(|| format!("the link to {target} names a heading that does not exist"))
}

/// The path of what a document calls `file`.
fn beside(document: &str, file: &str) -> String {
    let mut parts: Vec<_> = document.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether these words name something in the workspace: they begin with one of its folders, or are
/// one file's name with an ending of ours.
fn is_path(tree: &Tree, words: &str) -> bool {
    let plain = words
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-*/".contains(c));
    let first = words.split('/').next().unwrap_or_default();
    let below = words.contains('/') && !first.is_empty() && tree.has(first);
    let top = !words.contains('/')
        && [".md", ".toml"]
            .iter()
            .any(|ending| words.len() > ending.len() && words.ends_with(ending));
    plain && (below || top)
}

fn unknown_commands(tree: &Tree, line: &str) -> Vec<String> {
    let unknown = |words: &str, exists: &dyn Fn(&str) -> bool| -> Vec<String> {
        let names = names_after(line, words).filter(|name| !exists(name));
        names
            .map(|name| format!("`{}{name}`: there is no such", words.trim_start()))
            .collect()
    };
    let tasks = unknown("cargo xtask ", &|name| {
        Cli::command().find_subcommand(name).is_some()
    });
    let examples = unknown("--example ", &|name| {
        tree.has(&format!("crates/*/examples/{name}.rs"))
    });
    let packages = unknown(" -p ", &|name| {
        name == "xtask" || tree.has(&format!("crates/{name}/Cargo.toml"))
    });
    [tasks, examples, packages].concat()
}

fn names_after<'a>(line: &'a str, words: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(words)
        .map(|(at, found)| {
            let rest = &line[at + found.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            &rest[..end.unwrap_or(rest.len())]
        })
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let tree = Tree::from([
            ("docs/guide.md", text),
            ("README.md", "# The first lock\n"),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/Cargo.toml", ""),
            ("crates/a/examples/first.rs", ""),
        ]);
        check(&tree).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let good = "[a](../README.md) [b](../README.md#the-first-lock) [c](https://x.y/z) [d](#own)\n# Own";
        assert_eq!(complaints(good), [""; 0]);
        for bad in ["[a](README.md)", "[a](../README.md#last)", "[a](#own)"] {
            assert_eq!(complaints(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn paths_in_backticks_exist() {
        let good =
            "`crates/a/src/lib.rs` `crates/*/src` `README.md` `and/or` `lock/<key>` `/dlock/`";
        assert_eq!(complaints(good), [""; 0]);
        for bad in ["`crates/b`", "`crates/a/src/gone.rs`", "`GONE.md`"] {
            assert_eq!(complaints(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn commands_exist_also_in_blocks_of_code() {
        let good = "`cargo xtask verify --skip-tests`\n```sh\ncargo run --example first\ncargo test -p a\n```";
        assert_eq!(complaints(good), [""; 0]);
        let bad = "```sh\ncargo xtask deploy\ncargo run --example last\ncargo test -p b\n```";
        assert_eq!(complaints(bad).len(), 3);
    }
}
