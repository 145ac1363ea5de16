//! Which crate may know which: the arrows of ARCHITECTURE.md.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::tidy::Complaint;
use crate::tree::Tree;

/// For each crate, the crates of the workspace that it may depend on outside of its tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("etcd-kv", &[]),
    ("etcd-mock", &["etcd-kv", "lock-spi"]),
    (
        "fencelock",
        &[
            "etcd-mock",
            "lock-fence",
            "lock-spi",
            "store-etcd",
            "store-postgres",
        ],
    ),
    ("fencelock-cli", &["fencelock"]),
    (
        "lock-bench",
        &[
            "etcd-kv",
            "fencelock",
            "lock-spi",
            "store-etcd",
            "store-postgres",
            "test-servers",
        ],
    ),
    ("lock-fence", &["lock-spi"]),
    (
        "lock-sim",
        &[
            "etcd-kv",
            "etcd-mock",
            "fencelock",
            "lock-fence",
            "lock-spi",
            "parity-tests",
            "sim-runtime",
            "store-etcd",
        ],
    ),
    ("lock-spi", &[]),
    (
        "parity-matrix",
        &[
            "etcd-kv",
            "etcd-mock",
            "lock-spi",
            "parity-tests",
            "sim-runtime",
            "store-etcd",
            "store-postgres",
            "test-servers",
        ],
    ),
    ("parity-tests", &["lock-spi"]),
    ("sim-runtime", &["etcd-kv", "lock-spi"]),
    ("store-etcd", &["etcd-kv", "lock-spi"]),
    ("store-postgres", &["lock-spi"]),
    ("test-servers", &[]),
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let ours: BTreeSet<_> = tree.manifests().map(|(name, _)| name).collect();
    let mut complaints = Vec::new();
    for (name, manifest) in tree.manifests() {
        let mut complain = |what: String| {
            complaints.push(Complaint::new(format!("crates/{name}/Cargo.toml"), 1, what));
        };
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            complain(format!("{name} is not in the table of who may know whom"));
            continue;
        };
        match manifest {
            Ok(manifest) => {
                for dependency in normal_dependencies(&manifest) {
                    let dependency = dependency.as_str();
                    if ours.contains(dependency) && !allowed.contains(&dependency) {
                        complain(format!("{name} may not depend on {dependency}"));
                    }
                }
            }
            Err(error) => complain(format!("{error:#}")),
        }
    }
    complaints
}

/// What a crate depends on outside of its tests, on any platform.
fn normal_dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = targets.into_iter().flat_map(Table::values);
    let tables = tables.filter_map(Value::as_table).chain([manifest]);
    let dependencies = tables.flat_map(|table| {
        ["dependencies", "build-dependencies"]
            .into_iter()
            .filter_map(|kind| table.get(kind)?.as_table())
    });
    dependencies
        .flatten()
        .map(|(name, value)| {
            let renamed = value.get("package").and_then(Value::as_str);
            renamed.unwrap_or(name).to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(crate_name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{crate_name}/Cargo.toml");
        let tree = Tree::from([
            (path.as_str(), manifest),
            ("crates/lock-spi/Cargo.toml", ""),
            ("crates/fencelock/Cargo.toml", ""),
            ("crates/parity-tests/Cargo.toml", ""),
            ("crates/test-servers/Cargo.toml", ""),
        ]);
        check(&tree).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn a_store_that_knows_the_client_is_found_in_every_form() {
        for manifest in [
            "[dependencies]\nfencelock.workspace = true",
            "[build-dependencies]\nfencelock = \"1\"",
            "[target.'cfg(unix)'.dependencies]\nfencelock = { version = \"1\" }",
            "[dependencies]\nclient = { package = \"fencelock\", version = \"1\" }",
        ] {
            assert_eq!(
                complaints("store-etcd", manifest),
                ["store-etcd may not depend on fencelock"],
                "{manifest}"
            );
        }
    }

    #[test]
    fn the_suite_and_the_servers_are_for_tests_only() {
        for name in ["parity-tests", "test-servers"] {
            let normal = format!("[dependencies]\n{name}.workspace = true");
            assert_eq!(complaints("store-etcd", &normal).len(), 1, "{name}");
            let tests = format!("[dev-dependencies]\n{name}.workspace = true");
            assert_eq!(complaints("store-etcd", &tests), [""; 0], "{name}");
        }
    }

    #[test]
    fn what_the_table_allows_passes_and_an_unknown_crate_does_not() {
        let known = "[dependencies]\nlock-spi.workspace = true\ntokio = \"1\"";
        assert_eq!(complaints("store-etcd", known), [""; 0]);
        assert_eq!(complaints("store-redis", "").len(), 1);
    }
}
