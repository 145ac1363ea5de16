//! What can be typed. One module for what all commands have; what one command has stands with it.

mod duration;
mod globals;

use clap::{Parser, Subcommand};

pub(crate) use self::duration::duration;
pub(crate) use self::globals::Globals;
use crate::commands;

/// Distributed locks that can be trusted, for shells and operators.
#[derive(Debug, Parser)]
#[command(
    name = "fencelock",
    version,
    after_long_help = crate::exit::help(),
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// One variant for each command; its arguments stand in the command's own module.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(commands::run::Args),
    Inspect(commands::inspect::Args),
    List(commands::list::Args),
    Waiters(commands::waiters::Args),
    Sessions(commands::sessions::Args),
    Revoke(commands::revoke::Args),
    Revocations(commands::revocations::Args),
    Release(commands::release::Args),
    Wait(commands::wait::Args),
    Migrate(commands::migrate::Args),
    Doctor(commands::doctor::Args),
    Reap(commands::reap::Args),
    Recover(commands::recover::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}
