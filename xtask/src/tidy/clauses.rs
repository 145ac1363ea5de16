//! Every clause of the contract has a scenario that shows it, every scenario shows one, and what is
//! cited exists.

use std::collections::BTreeMap;

use proc_macro2::TokenTree;

use crate::tidy::{Complaint, tokens};
use crate::tree::Tree;

/// Where the clauses stand, each as `**ID**` under the method that it binds.
const CLAUSES: &[&str] = &[
    "crates/lock-spi/src/store.rs",
    "crates/lock-spi/src/admin.rs",
];
/// Where they are shown, each named at the head of a scenario's documentation, or in its list: in
/// `scenarios` and `suite.rs`, not where liars break them.
const SCENARIOS: &str = "crates/parity-tests/src/s";
/// Where each public function to the crate is a scenario.
const STORIES: &str = "crates/parity-tests/src/scenarios/";
/// How one begins.
const STORY: &str = "pub(crate) async fn ";
/// Where the invariants stand, and every clause is named once more.
const CONTRACT: &str = "docs/contract.md";

type Places<'a> = BTreeMap<String, (&'a str, usize)>;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let clauses = stated(tree, CLAUSES);
    let shown = shown(tree);
    let invariants = stated(tree, &[CONTRACT]);
    let contract = tree.text(CONTRACT).unwrap_or_default();
    let mut complaints = Vec::new();
    for (id, (path, line)) in &clauses {
        if !shown.contains_key(id) {
            let what = format!("no scenario shows {id}");
            complaints.push(Complaint::new(*path, *line, what));
        }
        if !contract.contains(id.as_str()) {
            let what = format!("{CONTRACT} does not name {id}");
            complaints.push(Complaint::new(*path, *line, what));
        }
    }
    for (id, (path, line)) in &shown {
        if !clauses.contains_key(id) && !invariants.contains_key(id) {
            let what = format!("there is no clause {id}");
            complaints.push(Complaint::new(*path, *line, what));
        }
    }
    for (path, line, name) in idle_scenarios(tree, &clauses) {
        complaints.push(Complaint::new(
            path,
            line,
            format!("{name} shows no clause"),
        ));
    }
    for (path, line, id) in cited_invariants(tree) {
        if !invariants.contains_key(&id) {
            let what = format!("{CONTRACT} has no {id}");
            complaints.push(Complaint::new(path, line, what));
        }
    }
    complaints
}

/// The ids that these files state as `**ID**`.
fn stated<'a>(tree: &'a Tree, paths: &[&'a str]) -> Places<'a> {
    let mut places = Places::new();
    for path in paths {
        let text = tree.text(path).unwrap_or_default();
        for (number, line) in (1..).zip(text.lines()) {
            let bold = line.split("**").skip(1).step_by(2);
            for id in bold.filter(|words| is_id(words)) {
                places.entry(id.to_owned()).or_insert((path, number));
            }
        }
    }
    places
}

/// The ids that scenarios name: a text in quotes, or the head of a documentation, is a list of ids.
fn shown(tree: &Tree) -> Places<'_> {
    let mut places = Places::new();
    for (path, text) in tree.rust_below(SCENARIOS) {
        tokens::for_each_run(tokens::of(text), &mut |run| {
            for token in run {
                let TokenTree::Literal(literal) = token else {
                    continue;
                };
                let words = literal.to_string();
                let head = words
                    .trim_matches('"')
                    .split(':')
                    .next()
                    .unwrap_or_default();
                for id in head.split(',').map(str::trim).filter(|word| is_id(word)) {
                    let place = (path, tokens::line(token));
                    places.entry(id.to_owned()).or_insert(place);
                }
            }
        });
    }
    places
}

/// The scenarios whose documentation begins with no clause.
fn idle_scenarios<'a>(tree: &'a Tree, clauses: &Places<'_>) -> Vec<(&'a str, usize, &'a str)> {
    let mut idle = Vec::new();
    for (path, text) in tree.rust_below(STORIES) {
        let mut shows = false;
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(words) = line.strip_prefix("///") {
                let head = words.split(':').next().unwrap_or_default();
                let mut ids = head.split(',').map(str::trim);
                shows = shows || ids.any(|id| clauses.contains_key(id));
                continue;
            }
            if let Some(story) = line.strip_prefix(STORY)
                && !shows
            {
                let name = story.split('(').next().unwrap_or_default();
                idle.push((path, number, name));
            }
            shows = false;
        }
    }
    idle
}

fn cited_invariants(tree: &Tree) -> Vec<(&str, usize, String)> {
    let texts = tree
        .files()
        .filter(|(path, _)| path.ends_with(".md") || path.starts_with("crates/"));
    texts
        .flat_map(|(path, text)| (1..).zip(text.lines()).map(move |line| (path, line)))
        .flat_map(|(path, (number, line))| {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            words
                .filter(|word| word.starts_with("INV-") && is_id(word))
                .map(move |word| (path, number, word.to_owned()))
        })
        .collect()
}

/// Whether a word has the form of an id: capitals, a hyphen, digits.
fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(family, number)| {
        family.len() > 1
            && family.bytes().all(|byte| byte.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(scenario: &str, contract: &str) -> Vec<String> {
        let tree = Tree::from([
            (
                "crates/lock-spi/src/store.rs",
                "/// - **READ-1** It changes nothing (INV-05).",
            ),
            ("crates/lock-spi/src/admin.rs", ""),
            ("crates/parity-tests/src/scenarios/read.rs", scenario),
            (CONTRACT, contract),
        ]);
        check(&tree).into_iter().map(|found| found.what).collect()
    }

    const CONTRACT_TEXT: &str = "**INV-05** Lost is lost. READ-1";

    #[test]
    fn a_clause_that_is_shown_passes_in_either_form() {
        for scenario in [
            "/// READ-1, B58: nothing changes.\nfn a() {}",
            "const A: &[&str] = &[\"READ-1\"];",
            "/// READ-1, INV-05: nothing changes.\nfn a() {}",
        ] {
            assert_eq!(complaints(scenario, CONTRACT_TEXT), [""; 0], "{scenario}");
        }
    }

    #[test]
    fn a_clause_without_a_scenario_is_found() {
        let scenario = "// READ-1\nfn a() { b(\"it speaks of: READ-1\") }";
        assert_eq!(
            complaints(scenario, CONTRACT_TEXT),
            ["no scenario shows READ-1"]
        );
    }

    #[test]
    fn a_scenario_that_shows_no_clause_is_found() {
        let shown = "/// READ-1: nothing\n/// changes.\npub(crate) async fn a(scene: Scene) {}\n";
        assert_eq!(complaints(shown, CONTRACT_TEXT), [""; 0]);
        for idle in [
            "/// It reads: well.\n",
            "/// INV-05: lost.\n",
            "/// READ-1: x.\n\n",
            "",
        ] {
            let scenarios = format!("{shown}{idle}pub(crate) async fn b(scene: Scene) {{}}");
            let expected = ["b shows no clause"];
            assert_eq!(complaints(&scenarios, CONTRACT_TEXT), expected, "{idle}");
        }
    }

    #[test]
    fn ids_that_nobody_stated_are_found() {
        let scenario = "/// READ-1, READ-2: nothing changes.\nfn a() {}";
        assert_eq!(
            complaints(scenario, CONTRACT_TEXT),
            ["there is no clause READ-2"]
        );
        let scenario = "/// READ-1: nothing changes.\nfn a() {}";
        assert_eq!(
            complaints(scenario, "READ-1"),
            ["docs/contract.md has no INV-05"]
        );
        assert_eq!(
            complaints(scenario, "**INV-05**"),
            ["docs/contract.md does not name READ-1"]
        );
    }
}
