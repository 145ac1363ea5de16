//! Benchmarks: optimised builds, run by themselves and never as part of the gate.

use clap::{Args, Subcommand};

use crate::steps::Steps;
use crate::{protoc, sim};

/// What is measured.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Bench {
    /// Locks on a real etcd, next to what etcd itself costs.
    Etcd(Options),
    /// Locks on a real Postgres, next to what Postgres itself costs.
    Postgres(Options),
    /// The simulated etcd by itself.
    Mock,
    /// Whole clients in the simulated world: seeds a second, and hours of a quiet world.
    Sim,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Options of the benchmark; `--help` names them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Runs a benchmark.
pub(crate) fn run(steps: &mut Steps, bench: &Bench) {
    match bench {
        Bench::Etcd(options) => locks(steps, "locks on etcd", "etcd", options),
        Bench::Postgres(options) => locks(steps, "locks on Postgres", "postgres", options),
        Bench::Mock => steps.cargo(
            "the simulated etcd",
            &["bench", "--package", "etcd-mock", "--bench", "store"],
        ),
        Bench::Sim => sim::bench(steps),
    }
}

fn locks(steps: &mut Steps, title: &'static str, server: &str, Options { options }: &Options) {
    // The program measures both servers, and its client of etcd needs protoc.
    protoc::bring(steps);
    let program = ["run", "--release", "--package", "lock-bench", "--", server];
    let options = options.iter().map(String::as_str);
    let arguments: Vec<_> = program.into_iter().chain(options).collect();
    steps.cargo(title, &arguments);
}
