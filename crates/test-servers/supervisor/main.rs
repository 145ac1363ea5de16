//! Runs one server for a test, and ends it when standard input closes: at the latest when the test's
//! process is over, however it ended. It needs nothing but the standard library, as `build.rs` builds
//! it by itself.
//!
//! Its arguments are the server's folder, program and arguments. Each line of its input is a command
//! and is answered by a line of output: `start` by the process id, or by what went wrong; `kill` by
//! `killed` once the process is gone. The server writes to `log` in its folder. At the end the folder
//! is deleted, and the one above it if that is then empty.

use std::env::args_os;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// How soon a server that ended by itself is reaped, so that its process id tells whether it runs.
const REAP_PERIOD: Duration = Duration::from_millis(20);

fn main() -> io::Result<()> {
    let mut arguments = args_os().skip(1);
    let (Some(folder), Some(program)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("wanted: FOLDER PROGRAM [ARGUMENT]..."));
    };
    let folder = PathBuf::from(folder);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // When the test's process dies, a group in which a process is stopped would be hung up, the
    // supervisor included.
    command.process_group(0);

    let obeyed = obey(&commands(), &folder, &mut command);
    fs::remove_dir_all(&folder)?;
    if let Some(above) = folder.parent() {
        // The folders of other servers may still be in it; the last one clears away.
        fs::remove_dir(above).or(Ok::<_, io::Error>(()))?;
    }
    obeyed
}

/// The lines of standard input, until it closes.
#[allow(
    clippy::disallowed_methods,
    reason = "a program of its own, in real time; nothing of it is replayed"
)]
fn commands() -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        // Input that cannot be read is as good as closed.
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Does what it is told until nobody can tell it anything any more. Then no server runs.
fn obey(commands: &Receiver<String>, folder: &Path, command: &mut Command) -> io::Result<()> {
    let mut server: Option<Child> = None;
    loop {
        if let Some(server) = &mut server {
            server.try_wait()?;
        }
        let answer = match commands.recv_timeout(REAP_PERIOD) {
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return end(server),
            Ok(line) if line == "start" && server.is_none() => match start(folder, command) {
                Ok(started) => server.insert(started).id().to_string(),
                Err(error) => error.to_string(),
            },
            Ok(line) if line == "kill" => {
                end(server.take())?;
                "killed".to_owned()
            }
            Ok(line) => format!("cannot {line} now"),
        };
        // When nobody reads, nobody writes either: the next command is the end of them.
        drop(writeln!(io::stdout(), "{answer}"));
    }
}

fn start(folder: &Path, command: &mut Command) -> io::Result<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))?;
    command.stdout(log.try_clone()?).stderr(log).spawn()
}

fn end(server: Option<Child>) -> io::Result<()> {
    if let Some(mut server) = server {
        server.kill()?;
        server.wait()?;
    }
    Ok(())
}
