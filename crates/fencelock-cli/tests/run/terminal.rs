//! `fencelock run` on a terminal, under a shell that controls jobs.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::unistd::{setsid, tcgetpgrp};

use crate::process::{fencelock, until};
use crate::scratch::{PATIENCE, Scratch};

const TTY: &str = "TERMINAL_OF_TEST";
const SCRIPT: &str = "SCRIPT_OF_TEST";

/// A terminal with a shell on it; what the keys and the screen would be.
struct Terminal {
    shell: Child,
    keys: File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// A shell with job control runs the script, in a session of its own on a new terminal.
    fn run(test: &str, folder: &Scratch, script: &str) -> Self {
        let master: PtyMaster = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = ptsname_r(&master).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        for (name, value) in fencelock("memory:", folder).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let shell = command
            .args(["--nocapture", "--exact", test])
            .current_dir(folder.path())
            .env(TTY, slave)
            .env(SCRIPT, script)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keys = File::from(std::os::fd::OwnedFd::from(master));
        let mut from = keys.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            // It ends when nobody has the terminal any more.
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]);
                shown.lock().unwrap().push_str(&text);
            }
        });
        Self {
            shell,
            keys,
            screen,
        }
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn await_text(&self, text: &str) {
        until(PATIENCE, &format!("{text:?} on the screen"), || {
            self.screen.lock().unwrap().contains(text).then_some(())
        });
    }

    /// Waits until the keys reach this group.
    #[track_caller]
    fn await_in_front(&self, group: i64) {
        until(PATIENCE, "group in front", || {
            let in_front = tcgetpgrp(&self.keys).unwrap();
            (i64::from(in_front.as_raw()) == group).then_some(())
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.shell.kill());
        drop(self.shell.wait());
        println!("{}", self.screen.lock().unwrap());
    }
}

/// Becomes the shell, if this process was started to.
fn become_shell() {
    let Some(tty) = std::env::var_os(TTY) else {
        return;
    };
    setsid().unwrap();
    // The first terminal that the leader of a session opens is that of the session.
    let tty = OpenOptions::new().read(true).write(true).open(tty).unwrap();
    let script = std::env::var(SCRIPT).unwrap();
    // Signals that are ignored here would be so for the shell and all that it starts.
    let error = Command::new("env")
        .args(["--default-signal", "bash", "-m", "-c", &script])
        .env_remove(TTY)
        .stdin(tty.try_clone().unwrap())
        .stdout(tty.try_clone().unwrap())
        .stderr(tty)
        .exec();
    panic!("{error}");
}

fn run(command: &str) -> String {
    format!(
        "{} run k -- sh -c '{command}'",
        env!("CARGO_BIN_EXE_fencelock")
    )
}

#[test]
fn the_interrupt_key_reaches_the_command() {
    become_shell();
    let folder = Scratch::new();
    let script = format!("{}; echo status $?", run("echo go; exec sleep 100"));
    let test = "terminal::the_interrupt_key_reaches_the_command";
    let mut terminal = Terminal::run(test, &folder, &script);
    terminal.await_text("go");
    terminal.type_in("\x03");
    terminal.await_text("status 130");
}

#[test]
fn the_command_reads_from_the_terminal() {
    become_shell();
    let folder = Scratch::new();
    let script = format!(
        "{}; echo status $?",
        run("echo go; read line; echo got $line > got; exit 7")
    );
    let test = "terminal::the_command_reads_from_the_terminal";
    let mut terminal = Terminal::run(test, &folder, &script);
    terminal.await_text("go");
    terminal.type_in("words\n");
    terminal.await_text("status 7");
    assert_eq!(
        fs::read_to_string(folder.file("got")).unwrap(),
        "got words\n"
    );
}

#[test]
fn the_stop_key_gives_the_shell_its_terminal_back_until_the_job_goes_on() {
    become_shell();
    let folder = Scratch::new();
    let script = format!(
        "{}; echo stopped $?; read go; fg; echo status $?",
        run("echo $$ > group; echo go; exec sleep 100")
    );
    let test = "terminal::the_stop_key_gives_the_shell_its_terminal_back_until_the_job_goes_on";
    let mut terminal = Terminal::run(test, &folder, &script);
    terminal.await_text("go");
    terminal.type_in("\x1a");
    terminal.await_text("stopped 14");
    terminal.type_in("\n");
    terminal.await_in_front(folder.number("group"));
    terminal.type_in("\x03");
    terminal.await_text("status 130");
}

/// K15: a job that stays stopped does not keep its command beyond the lock.
#[test]
fn a_job_that_stays_stopped_ends_with_its_lock() {
    become_shell();
    let folder = Scratch::new();
    let program = env!("CARGO_BIN_EXE_fencelock");
    let script = format!(
        "{program} run k --ttl 2s -- sh -c 'echo $$ > group; exec sleep 100'
         echo stopped $?; read go; fg; echo status $?"
    );
    let test = "terminal::a_job_that_stays_stopped_ends_with_its_lock";
    let mut terminal = Terminal::run(test, &folder, &script);
    let group = folder.number("group");
    terminal.type_in("\x1a");
    terminal.await_text("stopped 14");
    until(PATIENCE, "end of the command", || {
        let stat = fs::read_to_string(format!("/proc/{group}/stat")).unwrap_or_default();
        // Not reaped yet is as good as gone.
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    terminal.type_in("\n");
    terminal.await_text("status 80");
}
