//! What tools can mend by themselves.

use crate::steps::Steps;

/// Applies what clippy can apply, then formats.
pub(crate) fn run(steps: &mut Steps) {
    steps.cargo(
        "lints",
        &[
            "clippy",
            "--fix",
            "--allow-dirty",
            "--allow-staged",
            "--workspace",
            "--all-targets",
            "--all-features",
        ],
    );
    steps.cargo("format", &["fmt", "--all"]);
}
