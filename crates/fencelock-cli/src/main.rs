//! `fencelock`: distributed locks for shells and operators.
//!
//! [`args`] says what can be typed, [`commands`] has one module for each command, [`view`] what
//! they show, [`output`] is the one place that prints, and [`exit`] the one table of exit statuses.

mod args;
mod commands;
mod config;
mod context;
mod exit;
mod failure;
mod helpers;
mod operator;
mod output;
mod store;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    if let Some(status) = helpers::run() {
        return status;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return Output::usage(&answer).code(),
    };
    let output = Output::new(&cli.globals);
    match run(cli, &output) {
        Ok(exit) => exit.code(),
        // Whoever read our answer has read enough.
        Err(failure) if failure.is_broken_pipe() => Exit::Done.code(),
        Err(failure) => {
            output.failure(&failure);
            failure.exit.code()
        }
    }
}

fn run(cli: Cli, output: &Output) -> Result<Exit, Failure> {
    let context = Context::new(cli.globals, output)?;
    // The command's future runs on this thread, the client's tasks on others.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(commands::run(cli.command, &context))
}
