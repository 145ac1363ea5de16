//! The matrix of stores and servers on which the parity suite is played.

use clap::Args;

use crate::protoc;
use crate::steps::Steps;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Options of the matrix, as `--check` and `--etcd URL`; `-- --help` names them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Builds and runs the program that knows the stores, as the tests are built.
pub(crate) fn run(steps: &mut Steps, Options { options }: &Options) {
    // Its client of etcd needs protoc.
    protoc::bring(steps);
    let program = [
        "run",
        "--profile",
        "test",
        "--package",
        "parity-matrix",
        "--",
    ];
    let options = options.iter().map(String::as_str);
    let arguments: Vec<_> = program.into_iter().chain(options).collect();
    steps.cargo("parity", &arguments);
}
