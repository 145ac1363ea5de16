//! The gate: everything that must hold for a change to land. Reads only.

use std::path::Path;

use anyhow::Result;

use crate::steps::Steps;
use crate::tree::Tree;
use crate::{test, tidy};

/// Runs every check.
pub(crate) fn run(steps: &mut Steps, skip_tests: bool) -> Result<()> {
    steps.cargo("format", &["fmt", "--all", "--check"]);
    lints(steps)?;
    docs(steps);
    if !skip_tests {
        test::run(steps);
    }
    tidy::run(steps);
    Ok(())
}

fn lints(steps: &mut Steps) -> Result<()> {
    let deny = ["--", "-D", "warnings"];
    let workspace = ["clippy", "--workspace", "--all-targets"];
    for (name, features) in [
        ("lints", None),
        ("lints with all features", Some("--all-features")),
    ] {
        let arguments: Vec<_> = workspace.into_iter().chain(features).chain(deny).collect();
        steps.cargo(name, &arguments);
    }
    // One by one: in a build of the whole workspace another crate would switch the features on again.
    for package in with_features(steps.root())? {
        let alone = ["clippy", "-p", &package, "--lib", "--no-default-features"];
        let arguments: Vec<_> = alone.into_iter().chain(deny).collect();
        steps.cargo(
            &format!("lints of {package} without default features"),
            &arguments,
        );
    }
    Ok(())
}

fn with_features(root: &Path) -> Result<Vec<String>> {
    let mut packages = Vec::new();
    for (name, manifest) in Tree::read(root)?.manifests() {
        if manifest?.contains_key("features") {
            packages.push(name.to_owned());
        }
    }
    Ok(packages)
}

fn docs(steps: &mut Steps) {
    let public = ["doc", "--workspace", "--no-deps", "--all-features"];
    let deny = [("RUSTDOCFLAGS", "-D warnings")];
    steps.cargo_with("documentation", &public, &deny);
    let private: Vec<_> = public
        .into_iter()
        .chain(["--document-private-items"])
        .collect();
    steps.cargo_with("documentation of private items", &private, &deny);
}
