use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration;

/// What every command understands.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// The store that keeps the locks: postgres://…, etcd://…, etcds://… or memory:
    ///
    /// Without it the key `store` of a file fencelock.toml counts: that of the working folder or the
    /// nearest above it, else that of the folder `fencelock` in the user's configuration folder.
    // The value may hold a password.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "FENCELOCK_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<String>,
    /// The namespace of the locks in the store; otherwise the URL's, else `default`
    #[arg(long, global = true, value_name = "NAME", env = "FENCELOCK_NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Answer in JSON: one document, or one to a line where there is no end
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colour; `auto` is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// How long the store may take to answer, not how long to wait for a lock [default: 10s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            // Reads NO_COLOR and TERM, and asks whether it is a terminal.
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}
