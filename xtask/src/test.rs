//! Every test of the workspace. Those on real servers start them by themselves.

use crate::steps::Steps;

/// Runs all tests, the examples of the documentation, and the example that the README begins with.
pub(crate) fn run(steps: &mut Steps) {
    steps.cargo(
        "tests",
        &[
            "test",
            "--workspace",
            "--all-features",
            "--all-targets",
            "--no-fail-fast",
        ],
    );
    steps.cargo(
        "tests in the documentation",
        &["test", "--workspace", "--all-features", "--doc"],
    );
    steps.cargo("first lock", &["run", "--quiet", "--example", "first_lock"]);
}
