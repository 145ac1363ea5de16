//! Public async functions say how they fail, and what becomes of them when they are dropped. Clippy
//! does not see the first through `async_trait`, and the second not at all.

use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprLit, ImplItemFn, ItemFn, ItemMod, ItemTrait, Lit, Meta, PathSegment,
    Signature, TraitItemFn, Visibility,
};

use crate::tidy::Complaint;
use crate::tree::Tree;

/// The crates whose functions others call.
const INTERFACES: &[&str] = &[
    "crates/etcd-kv/src/",
    "crates/etcd-mock/src/",
    "crates/fencelock/src/",
    "crates/lock-spi/src/",
    "crates/store-etcd/src/",
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in INTERFACES.iter().flat_map(|folder| tree.rust_below(folder)) {
        match syn::parse_file(text) {
            Ok(file) => {
                let mut functions = Functions {
                    path,
                    complaints: &mut complaints,
                };
                functions.visit_file(&file);
            }
            Err(error) => complaints.push(Complaint::new(path, 1, error.to_string())),
        }
    }
    complaints
}

struct Functions<'a> {
    path: &'a str,
    complaints: &'a mut Vec<Complaint>,
}

impl Functions<'_> {
    fn look_at(&mut self, signature: &Signature, attributes: &[Attribute]) {
        if signature.asyncness.is_none() {
            return;
        }
        let docs = documentation(attributes);
        let mut sections = vec!["# Cancel safety"];
        if may_fail(signature) {
            sections.push("# Errors");
        }
        for section in sections {
            if !docs.iter().any(|line| line.trim() == section) {
                let what = format!("`{}` has no section `{section}`", signature.ident);
                let line = signature.ident.span().start().line;
                self.complaints.push(Complaint::new(self.path, line, what));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if matches!(function.vis, Visibility::Public(_)) {
            self.look_at(&function.sig, &function.attrs);
        }
    }

    // Methods of an implementation of a trait have no visibility; their trait has the sections.
    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if matches!(function.vis, Visibility::Public(_)) {
            self.look_at(&function.sig, &function.attrs);
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        if matches!(item.vis, Visibility::Public(_)) {
            visit::visit_item_trait(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.look_at(&function.sig, &function.attrs);
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }
}

fn documentation(attributes: &[Attribute]) -> Vec<String> {
    attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
            _ => None,
        })
        .filter_map(|value| match value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(line),
                ..
            }) => Some(line.value()),
            _ => None,
        })
        .collect()
}

fn may_fail(signature: &Signature) -> bool {
    struct Results(bool);
    impl Visit<'_> for Results {
        fn visit_path_segment(&mut self, segment: &PathSegment) {
            self.0 |= segment.ident == "Result";
            visit::visit_path_segment(self, segment);
        }
    }
    let mut results = Results(false);
    results.visit_return_type(&signature.output);
    results.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<(usize, String)> {
        check(&Tree::from([("crates/lock-spi/src/store.rs", text)]))
            .into_iter()
            .map(|found| (found.line, found.what))
            .collect()
    }

    #[test]
    fn methods_of_a_trait_need_both_sections() {
        let text =
            "#[async_trait]\npub trait Store {\n/// Reads.\nasync fn read(&self) -> Result<()>;\n}";
        assert_eq!(
            complaints(text),
            [
                (4, "`read` has no section `# Cancel safety`".to_owned()),
                (4, "`read` has no section `# Errors`".to_owned()),
            ]
        );
    }

    #[test]
    fn what_cannot_fail_needs_no_errors_but_says_what_dropping_it_does() {
        let text = "impl Guard {\n/// Waits.\npub async fn lost(&self) -> Lost {}\n}";
        assert_eq!(
            complaints(text),
            [(3, "`lost` has no section `# Cancel safety`".to_owned())]
        );
    }

    #[test]
    fn functions_of_modules_are_seen_and_those_of_tests_are_not() {
        let text =
            "pub mod a { pub async fn b() {} }\nmod tests { pub async fn c() -> Result<()> {} }";
        assert_eq!(complaints(text).len(), 1);
    }

    #[test]
    fn documented_private_and_foreign_methods_pass() {
        let text = "
            /// Opens.
            ///
            /// # Errors
            ///
            /// None.
            ///
            /// # Cancel safety
            ///
            /// Cancel safe.
            pub async fn open() -> lock_spi::Result<()> {}
            pub(crate) async fn inner() -> Result<()> {}
            impl Store for Own { async fn read(&self) -> Result<()> {} }
        ";
        assert_eq!(complaints(text), []);
    }
}
