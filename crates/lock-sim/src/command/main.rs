//! Plays seeds of the simulated world, and tells what went wrong with them. `cargo xtask sim` runs
//! it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it talks to the person who runs it"
)]

mod bench;
mod bugs;
mod clock;
mod failure;
mod options;
mod player;
mod progress;
mod quiet;
mod seeds;
mod table;
mod tape_file;

use std::process::ExitCode;

use clap::Parser;

use crate::options::{Options, Task};

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    quiet::keep_panics_quiet();
    let passed = match options.task()? {
        Task::Bench => bench::run_all(&options),
        Task::Bugs => bugs::run(&options)?,
        Task::Seed(seed) => failure::play_seed(&options, seed)?,
        Task::Seeds => seeds::run(&options)?,
        Task::Tape(path) => failure::play_tape(&path)?,
    };
    Ok(match passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
