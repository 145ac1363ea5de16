//! The etcd store deletes nothing but by the transactions in its `ops`, which compare first. Its
//! client to a real etcd only passes on what it is given.

use proc_macro2::{Delimiter, TokenTree};

use crate::tidy::{Complaint, tokens};
use crate::tree::Tree;

const SOURCES: &str = "crates/store-etcd/src/";
const TRANSACTIONS: &str = "crates/store-etcd/src/ops/";
const CLIENT: &str = "crates/store-etcd/src/client/";

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.rust_below(SOURCES) {
        if [TRANSACTIONS, CLIENT]
            .iter()
            .any(|folder| path.starts_with(folder))
        {
            continue;
        }
        tokens::for_each_run(tokens::of(text), &mut |run| {
            for (at, token) in run.iter().enumerate() {
                if deletes(token, &run[at + 1..]) {
                    let what = format!("a delete: it belongs below {TRANSACTIONS}");
                    complaints.push(Complaint::new(path, tokens::line(token), what));
                }
            }
        });
    }
    complaints
}

fn deletes(token: &TokenTree, after: &[TokenTree]) -> bool {
    let request = tokens::is_word(token, "DeleteRequest");
    let operation = tokens::is_word(token, "Op")
        && matches!(after, [a, b, name, ..]
            if tokens::is_sign(a, ':') && tokens::is_sign(b, ':') && tokens::is_word(name, "Delete"));
    let call = tokens::is_sign(token, '.')
        && matches!(after, [name, arguments, ..]
            if tokens::is_word(name, "delete")
                && tokens::between(arguments, Delimiter::Parenthesis).is_some());
    request || operation || call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_outside_of_the_transactions_is_found_in_each_of_its_forms() {
        let text = "use etcd_kv::DeleteRequest;\nfn a() -> Op { Op::Delete(b) }\nfn c() { kv\n.delete(d) }";
        let complaints = check(&Tree::from([("crates/store-etcd/src/store.rs", text)]));
        let lines: Vec<_> = complaints.iter().map(|complaint| complaint.line).collect();
        assert_eq!(lines.len(), 3);
        assert!(
            [1, 2, 4].iter().all(|line| lines.contains(line)),
            "{lines:?}"
        );
    }

    #[test]
    fn the_transactions_and_other_crates_may_delete() {
        let text = "fn a() -> Op { Op::Delete(b) }";
        let tree = Tree::from([
            ("crates/store-etcd/src/ops/delete.rs", text),
            ("crates/etcd-mock/src/txn.rs", text),
            (
                "crates/store-etcd/src/reply.rs",
                "fn a(b: OpResponse) { matches!(b, OpResponse::Delete(_)); delete_if_owner() }",
            ),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn the_client_passes_deletes_on() {
        let text = "use etcd_kv::DeleteRequest;";
        let tree = Tree::from([("crates/store-etcd/src/client/requests.rs", text)]);
        assert_eq!(check(&tree), []);
    }
}
