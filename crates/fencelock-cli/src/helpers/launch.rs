//! The process that becomes the command: it stops before the command's first instruction, until
//! `fencelock` has told the supervisor of it and lets it go on.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use nix::sys::signal::{Signal, raise};
use nix::unistd::{Pid, getppid};

use crate::exit::Exit;

pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = arguments.next().and_then(|pid| pid.into_string().ok());
    let parent = parent.and_then(|pid| pid.parse().ok()).map(Pid::from_raw);
    let (Some(parent), Some(program)) = (parent, arguments.next()) else {
        return Exit::Broken.code();
    };
    // A second net below the supervisor: it outlives the exec, but reaches only this process.
    #[cfg(target_os = "linux")]
    if nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_err() {
        return Exit::Broken.code();
    }
    // Whoever wakes this process, the command begins only while its lock is watched over.
    if getppid() != parent || raise(Signal::SIGSTOP).is_err() || getppid() != parent {
        return Exit::Lost.code();
    }
    let error = Command::new(&program).args(arguments).exec();
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        _ => Exit::NotExecutable,
    };
    // This process is the command's, so it tells by itself what the command cannot.
    let program = program.to_string_lossy();
    drop(writeln!(
        io::stderr(),
        "fencelock: {program} cannot be run: {error}"
    ));
    exit.code()
}
