//! A version that a document states is the one of the manifest.

use toml::Table;

use crate::tidy::Complaint;
use crate::tree::Tree;

const README: &str = "README.md";

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let manifest = tree.text("Cargo.toml").unwrap_or_default();
    let package = manifest
        .parse::<Table>()
        .ok()
        .and_then(|table| table.get("workspace")?.get("package").cloned());
    let stated = |name: &str| Some(package.as_ref()?.get(name)?.as_str()?.to_owned());
    let Some((rust, own)) = stated("rust-version").zip(stated("version")) else {
        let what = "the workspace states no version of its own, or none of Rust";
        return vec![Complaint::new("Cargo.toml", 1, what)];
    };
    let own = own
        .rsplit_once('.')
        .map_or(own.as_str(), |(minor, _)| minor);
    let mut complaints = Vec::new();
    for (path, text) in tree.documents() {
        for (line, words) in (1..).zip(text.lines()) {
            for (before, right) in [("Rust ", rust.as_str()), ("fencelock = \"", own)] {
                for found in versions_after(words, before) {
                    if found != right {
                        let what = format!("{before}{found} is {right} in the manifest");
                        complaints.push(Complaint::new(path, line, what));
                    }
                }
            }
        }
    }
    if !tree
        .text(README)
        .unwrap_or_default()
        .contains(&format!("Rust {rust}"))
    {
        let what = format!("it does not say that Rust {rust} is needed");
        complaints.push(Complaint::new(README, 1, what));
    }
    complaints
}

fn versions_after<'a>(line: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(before).filter_map(|(at, words)| {
        let rest = &line[at + words.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let version = rest[..end].trim_end_matches('.');
        (!version.is_empty()).then_some(version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(readme: &str) -> Vec<String> {
        let manifest = "[workspace.package]\nversion = \"0.3.1\"\nrust-version = \"1.94\"";
        let tree = Tree::from([("Cargo.toml", manifest), (README, readme)]);
        check(&tree).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn the_versions_of_the_manifest_pass() {
        let readme = "Needs Rust 1.94.\nRust users: `fencelock = \"0.3\"`";
        assert_eq!(complaints(readme), [""; 0]);
    }

    #[test]
    fn other_versions_and_none_at_all_are_found() {
        assert_eq!(complaints("Needs Rust 1.94, or Rust 1.93.").len(), 1);
        assert_eq!(complaints("Rust 1.94. `fencelock = \"0.2\"`").len(), 1);
        assert_eq!(complaints("Needs Rust.").len(), 1);
    }
}
