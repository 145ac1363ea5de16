//! What documents show as a name of the code is one: a name that the compiler accepted somewhere in
//! the sources.

use std::collections::BTreeSet;

use proc_macro2::TokenTree;

use crate::tidy::markdown::Document;
use crate::tidy::{Complaint, tokens};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let known = known(tree);
    let mut complaints = Vec::new();
    for (path, text) in tree.documents() {
        for (line, code) in Document::parse(text).codes {
            for name in claimed(&code) {
                if !known.contains(name) {
                    let what = format!("`{code}`: nothing in the sources is called {name}");
                    complaints.push(Complaint::new(path, line, what));
                }
            }
        }
    }
    complaints
}

/// Every name in the sources, the words of the database's functions outside of their comments, and
/// those of the manifests and settings at the root.
fn known(tree: &Tree) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (_, text) in tree.rust_below("") {
        tokens::for_each_run(tokens::of(text), &mut |run| {
            known.extend(run.iter().filter_map(|token| match token {
                TokenTree::Ident(name) => Some(name.to_string()),
                _ => None,
            }));
        });
    }
    let functions = tree.files().filter(|(path, _)| path.ends_with(".sql"));
    for (_, text) in functions {
        let code = text
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default());
        known.extend(code.flat_map(words).map(str::to_owned));
    }
    let settings = tree.files().filter(|(path, _)| path.ends_with(".toml"));
    for (_, text) in settings {
        known.extend(words(text).map(str::to_owned));
        // A package `lock-spi` is the crate `lock_spi`.
        let packages = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        known.extend(packages.map(|name| name.replace('-', "_")));
    }
    known
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The names that these words claim: those of a path like `lock_spi::Error::kind()`, one in camel
/// case, or one with underscores.
fn claimed(code: &str) -> Vec<&str> {
    let path = code
        .split(['(', '<', '{', '!', '?'])
        .next()
        .unwrap_or_default();
    let names: Vec<_> = path.split("::").flat_map(|part| part.split('.')).collect();
    let are_names = names.iter().all(|name| is_name(name));
    let claims = path.contains("::")
        || names
            .iter()
            .any(|name| is_camel_case(name) || is_snake_case(name));
    if are_names && claims {
        names
    } else {
        Vec::new()
    }
}

fn is_name(word: &str) -> bool {
    let first = word.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_camel_case(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().any(|c| c.is_ascii_lowercase())
}

fn is_snake_case(word: &str) -> bool {
    word.trim_matches('_').contains('_') && !word.chars().any(|c| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let tree = Tree::from([
            ("README.md", text),
            (
                "crates/lock-spi/src/lib.rs",
                "pub struct Guard; impl Guard { fn check_it() {} } // Ghost\nconst A: &str = \"Ghost\";",
            ),
            ("crates/lock-spi/Cargo.toml", "name = \"lock-spi\""),
            (
                "crates/store/migrations/a.sql",
                "CREATE FUNCTION s.take_1() -- as take_2",
            ),
        ]);
        check(&tree).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn names_that_exist_pass_and_other_words_claim_nothing() {
        let good = "`Guard` `Guard::check_it()` `lock_spi::Guard` `check_it(x, y)` `take_1` `memory:` `lock/<key>` `INV-01` `SIGKILL` `true`";
        assert_eq!(complaints(good), [""; 0]);
    }

    #[test]
    fn names_that_do_not_exist_are_found() {
        for bad in [
            "`Ghost`",
            "`Guard::gone`",
            "`lock_gone::Guard`",
            "`a_test_that_nobody_wrote`",
            "`Gone<T>`",
            "`gone_by(key)`",
            "`take_2`",
        ] {
            assert_eq!(complaints(bad).len(), 1, "{bad}");
        }
    }
}
