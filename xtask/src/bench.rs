//! Benchmarks: optimised builds, run by themselves and never as part of the gate.

use clap::Subcommand;

use crate::protoc;
use crate::steps::Steps;

/// What is measured.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Bench {
    /// Locks on a real etcd, next to what etcd itself costs.
    Etcd {
        /// Options of the benchmark; `--help` names them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// The simulated etcd by itself.
    Mock,
}

/// Runs a benchmark.
pub(crate) fn run(steps: &mut Steps, bench: &Bench) {
    match bench {
        Bench::Etcd { options } => {
            protoc::bring(steps);
            let program = ["run", "--release", "--package", "lock-bench", "--", "etcd"];
            let options = options.iter().map(String::as_str);
            let arguments: Vec<_> = program.into_iter().chain(options).collect();
            steps.cargo("locks on etcd", &arguments);
        }
        Bench::Mock => steps.cargo(
            "the simulated etcd",
            &["bench", "--package", "etcd-mock", "--bench", "store"],
        ),
    }
}
