//! The project's own tasks: `cargo xtask verify`, `fix`, `test`, `tidy`, `parity`, `sim` and
//! `bench`.

#![allow(
    clippy::print_stdout,
    reason = "a task talks to the person who runs it"
)]

mod bench;
mod fix;
mod parity;
mod protoc;
mod sim;
mod steps;
mod test;
mod tidy;
mod tree;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::steps::Steps;

/// The project's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measures how fast it is.
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
    /// Writes what can be mended by tools: formatting and machine-applicable lints.
    Fix,
    /// Plays the parity suite on every store and server, and writes `docs/parity.md`.
    Parity(parity::Options),
    /// Plays whole clients in a simulated world, with every fault, and checks the invariants.
    Sim(sim::Options),
    /// Runs every test of the workspace, those in the documentation and those on real servers
    /// included.
    Test,
    /// Checks what compilers and linters cannot see. Writes nothing.
    Tidy,
    /// Checks everything that must hold for a change to land. Writes nothing.
    Verify {
        /// Leave the tests out, where `cargo xtask test` has just run them.
        #[arg(long)]
        skip_tests: bool,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let task = Cli::parse().task;
    let mut steps = Steps::new(root());
    if !matches!(
        task,
        Task::Bench { .. } | Task::Parity(_) | Task::Sim(_) | Task::Tidy
    ) {
        protoc::bring(&mut steps);
    }
    match task {
        Task::Bench { what } => bench::run(&mut steps, &what),
        Task::Fix => fix::run(&mut steps),
        Task::Parity(options) => parity::run(&mut steps, &options),
        Task::Sim(options) => sim::run(&mut steps, &options),
        Task::Test => test::run(&mut steps),
        Task::Tidy => tidy::run(&mut steps),
        Task::Verify { skip_tests } => verify::run(&mut steps, skip_tests)?,
    }
    Ok(steps.finish())
}

/// The folder of the workspace. Cargo names the folder of the package it runs; outside of cargo the
/// one of the build serves.
fn root() -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let mut root = PathBuf::from(package);
    root.pop();
    root
}
