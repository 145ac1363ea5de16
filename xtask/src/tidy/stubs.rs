//! Nothing is left for later: no stubs, and no test that is skipped.

use proc_macro2::{Delimiter, TokenTree};

use crate::tidy::{Complaint, tokens};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.rust_below("") {
        tokens::for_each_run(tokens::of(text), &mut |run| {
            for pair in run.windows(2) {
                if let Some(what) = fault(&pair[0], &pair[1]) {
                    complaints.push(Complaint::new(path, tokens::line(&pair[0]), what));
                }
            }
        });
    }
    complaints
}

fn fault(first: &TokenTree, second: &TokenTree) -> Option<&'static str> {
    let stub = ["todo", "unimplemented"]
        .iter()
        .any(|word| tokens::is_word(first, word));
    if stub && tokens::is_sign(second, '!') {
        return Some("a stub: write it, or leave it out");
    }
    let attribute = tokens::is_sign(first, '#')
        .then(|| tokens::between(second, Delimiter::Bracket))
        .flatten();
    let ignored = attribute?.into_iter().next()?;
    tokens::is_word(&ignored, "ignore").then_some("a test that never runs: mend it, or remove it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_and_skipped_tests_are_found_with_their_lines() {
        let text = "fn a() {\n todo!()\n}\nfn b() { x(|| unimplemented!(\"later\")) }\n#[test]\n#[ignore = \"slow\"]\nfn c() {}";
        let complaints = check(&Tree::from([("a.rs", text)]));
        let mut lines: Vec<_> = complaints.iter().map(|complaint| complaint.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [2, 4, 6]);
    }

    #[test]
    fn words_and_comments_are_not_stubs() {
        let text = "// todo!()\nfn a() { let todo = \"todo!()\"; ignore(todo); }";
        assert_eq!(check(&Tree::from([("a.rs", text)])), []);
    }
}
