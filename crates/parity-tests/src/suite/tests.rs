//! The list and the scenarios' own documentation say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::*;
use crate::lack::Lack;

struct Documented {
    chapter: String,
    ids: BTreeSet<String>,
}

/// Every scenario in the sources, with the ids that its documentation begins with.
fn documented() -> BTreeMap<String, Documented> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scenarios");
    let mut found = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let chapter = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut docs = String::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            if let Some(text) = line.strip_prefix("///") {
                docs.push_str(text);
            } else if let Some(rest) = line.strip_prefix("pub(crate) async fn ") {
                let name = rest.split('(').next().unwrap().to_owned();
                let ids = docs.split(':').next().unwrap().split(',');
                let ids = ids.map(|id| id.trim().to_owned()).collect();
                let chapter = chapter.clone();
                assert!(found.insert(name, Documented { chapter, ids }).is_none());
                docs.clear();
            } else {
                docs.clear();
            }
        }
    }
    found
}

#[test]
fn every_scenario_is_listed_as_it_is_documented() {
    let mut documented = documented();
    for scenario in SCENARIOS {
        let Some(Documented { chapter, ids }) = documented.remove(scenario.name) else {
            panic!("{} is listed twice, or nowhere written", scenario.name);
        };
        assert_eq!(chapter, scenario.chapter, "{}", scenario.name);
        let listed = scenario.clauses.iter().chain(scenario.cases);
        let listed: BTreeSet<_> = listed.map(|&id| id.to_owned()).collect();
        assert_eq!(ids, listed, "{}", scenario.name);
        assert!(!scenario.clauses.is_empty(), "{}", scenario.name);
    }
    let forgotten: Vec<_> = documented.into_keys().collect();
    assert!(forgotten.is_empty(), "not listed: {forgotten:?}");
}

/// The scenarios in whose text one of these words stands.
fn that_say(words: &[&str]) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scenarios");
    let files = fs::read_dir(folder).unwrap();
    let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    texts
        .flat_map(|text| {
            let stories = text.split("pub(crate) async fn ").skip(1);
            let saying = stories.filter(|story| words.iter().any(|word| story.contains(word)));
            let names = saying.map(|story| story.split('(').next().unwrap().to_owned());
            names.collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn those_left_out_are_those_that_need_what_is_lacking() {
    for (lack, words) in [
        (Lack::Faults, &["faulty_node("][..]),
        (Lack::Operators, &["admin()?", "recovered(&"]),
    ] {
        let named = lack.scenarios().iter().map(|&name| name.to_owned());
        assert_eq!(named.collect::<BTreeSet<_>>(), that_say(words), "{lack}");
    }
}

/// The ids of the clauses in the contract's documentation.
fn clauses() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lock-spi/src");
    ["store.rs", "admin.rs"]
        .iter()
        .flat_map(|file| {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            let bold = text.split("- **").skip(1);
            bold.filter_map(|rest| rest.split("**").next().map(str::to_owned))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_clause_of_the_contract_has_a_scenario_and_no_other_is_claimed() {
    let shown: BTreeSet<_> = SCENARIOS
        .iter()
        .flat_map(|scenario| scenario.clauses)
        .map(|&clause| clause.to_owned())
        .collect();
    assert_eq!(shown, clauses());
}
