//! A `select!` without `biased` draws its order from a generator of its own, and no run replays.

use crate::tidy::{Complaint, tokens};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.rust_below("crates/") {
        tokens::for_each_run(tokens::of(text), &mut |run| {
            for triple in run.windows(3) {
                let [name, sign, proc_macro2::TokenTree::Group(body)] = triple else {
                    continue;
                };
                let select = tokens::is_word(name, "select") && tokens::is_sign(sign, '!');
                let first = body.stream().into_iter().next();
                if select && !first.is_some_and(|first| tokens::is_word(&first, "biased")) {
                    let what = "a select that is not biased: begin it with `biased;`";
                    complaints.push(Complaint::new(path, tokens::line(name), what));
                }
            }
        });
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unbiased_select_is_found_also_inside_of_another() {
        let text = "async fn a() {\n tokio::select! {\n  biased;\n  _ = b => {\n   select! { _ = c => {} }\n  }\n }\n}";
        let complaints = check(&Tree::from([("crates/a/src/lib.rs", text)]));
        assert_eq!(complaints.len(), 1);
        assert_eq!(complaints[0].line, 5);
    }
}
