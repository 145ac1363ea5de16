//! `fencelock run` as a process among processes, on real servers.

// In helpers too, a failed unwrap is a failed test; and processes take real time.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods)]
// Margins are measured.
#![allow(clippy::print_stdout)]

mod cut;
mod first_look;
mod grant;
mod killed;
mod leftovers;
mod process;
mod scratch;
mod servers;
mod signals;
mod statuses;
mod stopped;
mod terminal;
mod waiting;
