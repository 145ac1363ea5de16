//! Runs one server for a test, and ends it when standard input closes: at the latest when the test's
//! process is over, however it ended. It needs nothing but the standard library, as `build.rs` builds
//! it by itself.
//!
//! Its arguments are the server's folder, its user as `UID:GID` or `-` for the present one, its
//! program and its arguments. Each line of its input is a command and is answered by a line of
//! output: `start` by the process id, or by what went wrong; `kill` by `killed` once no process of
//! the server is left, also when it has ended by itself. The server writes to `log` in its folder. At
//! the end the folder is deleted, and the one above it if that is then empty.

mod memory;
mod processes;
mod server;
mod user;

use std::env::args_os;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::server::Server;
use crate::user::User;

/// How soon a server that ended by itself is reaped, so that its process id tells whether it runs.
const REAP_PERIOD: Duration = Duration::from_millis(20);

fn main() -> io::Result<()> {
    let mut arguments = args_os().skip(1);
    let (Some(folder), Some(user), Some(program)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err(io::Error::other(
            "wanted: FOLDER USER PROGRAM [ARGUMENT]...",
        ));
    };
    let folder = PathBuf::from(folder);
    let user = user_of(&user)?;
    let mut command = Command::new(program);
    command.args(arguments);

    let obeyed = obey(&commands(), &folder, &mut command, user);
    fs::remove_dir_all(&folder)?;
    if let Some(above) = folder.parent() {
        // The folders of other servers may still be in it; the last one clears away.
        fs::remove_dir(above).or(Ok::<_, io::Error>(()))?;
    }
    obeyed
}

fn user_of(argument: &OsStr) -> io::Result<Option<User>> {
    match argument.to_string_lossy().as_ref() {
        "-" => Ok(None),
        user => user.parse().map(Some).map_err(io::Error::other),
    }
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
fn obey(
    commands: &Receiver<String>,
    folder: &Path,
    command: &mut Command,
    user: Option<User>,
) -> io::Result<()> {
    let mut server: Option<Server> = None;
    loop {
        if let Some(server) = &mut server {
            server.reap()?;
        }
        let answer = match commands.recv_timeout(REAP_PERIOD) {
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return server.map_or(Ok(()), Server::end),
            Ok(line) if line == "start" && server.is_none() => {
                match Server::start(folder, command, user) {
                    Ok(started) => server.insert(started).pid().to_string(),
                    Err(error) => error.to_string(),
                }
            }
            Ok(line) if line == "kill" => match server.take().map_or(Ok(()), Server::end) {
                Ok(()) => "killed".to_owned(),
                Err(error) => error.to_string(),
            },
            Ok(line) => format!("cannot {line} now"),
        };
        // When nobody reads, nobody writes either: the next command is the end of them.
        drop(writeln!(io::stdout(), "{answer}"));
    }
}
