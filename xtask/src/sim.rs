//! The simulated world: seeds, stories of failures, known bugs.

use clap::Args;

use crate::steps::Steps;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Options of the simulator, as `--seeds N`, `--time 10m`, `--seed S`, `--bug NAME`, `--bugs` and
    /// `--tape FILE`; `-- --help` names them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Builds and runs the program that plays seeds, optimised: it plays many.
pub(crate) fn run(steps: &mut Steps, Options { options }: &Options) {
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    play(steps, "simulator", &options);
}

/// How fast it plays.
pub(crate) fn bench(steps: &mut Steps) {
    play(steps, "the simulator", &["--bench"]);
}

fn play(steps: &mut Steps, name: &str, options: &[&str]) {
    let program = [
        "run",
        "--release",
        "--package",
        "lock-sim",
        "--features",
        "command",
        "--bin",
        "lock-sim",
        "--",
    ];
    let arguments: Vec<_> = program.into_iter().chain(options.iter().copied()).collect();
    steps.cargo(name, &arguments);
}
