//! The two processes that `fencelock run` starts of itself: one that becomes the command, and one
//! that ends it when `fencelock` cannot.
//!
//! They read no configuration and take no flags; nobody types them.

pub(crate) mod clock;
mod launch;
mod supervise;

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// Words that no command of ours is called by.
const LAUNCH: &str = "%launch";
const SUPERVISE: &str = "%supervise";

/// Does a helper's work if this process is one.
pub(crate) fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next()?;
    if word == OsStr::new(LAUNCH) {
        Some(launch::run(arguments))
    } else if word == OsStr::new(SUPERVISE) {
        Some(supervise::run())
    } else {
        None
    }
}

/// The helper that becomes the command.
pub(crate) fn launcher() -> Command {
    let mut command = own_program();
    command.arg(LAUNCH).arg(std::process::id().to_string());
    command
}

/// The helper that ends the command's group when it must.
pub(crate) fn supervisor() -> Command {
    let mut command = own_program();
    command.arg(SUPERVISE);
    command
}

fn own_program() -> Command {
    // The link works also when the file was replaced meanwhile.
    let link = std::path::Path::new("/proc/self/exe");
    let program = match link.exists() {
        true => link.to_owned(),
        false => std::env::current_exe().unwrap_or_else(|_| "fencelock".into()),
    };
    let mut command = Command::new(program);
    command.arg0("fencelock");
    command
}
