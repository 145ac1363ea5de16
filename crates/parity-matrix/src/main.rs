//! Plays the parity suite, and histories, on every store there is, and reports where they differ.
//! `cargo xtask parity` runs it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it talks to the person who runs it"
)]

// What the stores' own tests play scenarios on.
#[path = "../../store-etcd/tests/deployment/mod.rs"]
mod deployment;
#[path = "../../store-postgres/tests/wire/mod.rs"]
mod wire;

mod known_bugs;
mod matrix;
mod observe;
mod options;
mod panics;
mod places;
mod play;
mod progress;
mod report;

use std::process::ExitCode;

use clap::Parser;

use crate::matrix::Matrix;
use crate::options::Options;

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    panics::keep_quiet();
    let matrix = Matrix::play(&options)?;
    println!("\n{}", report::summary(&matrix));
    let written = match (matrix.is_whole(), options.check) {
        (false, _) => {
            println!("Not everything was played: the report is left as it is.");
            true
        }
        (true, false) => report::write(&options.report, &matrix)?,
        (true, true) => report::is_fresh(&options.report, &matrix)?,
    };
    Ok(match matrix.falls_short() || !written {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
