//! The supervisor ends its server and clears away, however the test's process ends.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, test_kill_process};

/// A supervisor of a server that does nothing for an hour.
struct Supervised {
    supervisor: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Supervised {
    fn new(name: &str, program: &str) -> io::Result<Self> {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let folder = home.join("m0");
        fs::create_dir_all(&folder)?;
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_test-server-supervisor"))
            .arg(&folder)
            .args(["-", program, "3600"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (supervisor.stdin.take(), supervisor.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("no pipes"));
        };
        Ok(Self {
            supervisor,
            input,
            output: BufReader::new(output),
            folder,
        })
    }

    fn ask(&mut self, command: &str) -> io::Result<String> {
        writeln!(self.input, "{command}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    fn start(&mut self) -> io::Result<Pid> {
        let pid = self.ask("start")?.parse().map_err(io::Error::other)?;
        Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Closes the pipe, as the end of a process does.
    fn abandon(mut self) -> io::Result<()> {
        drop(self.input);
        let status = self.supervisor.wait()?;
        assert!(status.success(), "{status}");
        assert!(!self.folder.exists());
        Ok(())
    }
}

fn runs(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

#[test]
fn when_the_pipe_closes_the_server_is_killed_and_its_folders_deleted() {
    let mut supervised = Supervised::new("forgotten", "sleep").unwrap();
    let pid = supervised.start().unwrap();
    assert!(runs(pid));
    let home = supervised.folder.parent().unwrap().to_owned();
    supervised.abandon().unwrap();
    assert!(!runs(pid));
    assert!(!home.exists());
}

#[test]
fn a_folder_above_that_others_are_in_stays() {
    let supervised = Supervised::new("shared", "sleep").unwrap();
    let home = supervised.folder.parent().unwrap().to_owned();
    fs::create_dir(home.join("m1")).unwrap();
    supervised.abandon().unwrap();
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn a_killed_server_keeps_its_folder_and_can_be_started_again() {
    let mut supervised = Supervised::new("killed", "sleep").unwrap();
    let first = supervised.start().unwrap();
    assert_eq!(supervised.ask("kill").unwrap(), "killed");
    assert!(!runs(first));
    assert!(supervised.folder.join("log").exists());
    let second = supervised.start().unwrap();
    assert!(runs(second));
    supervised.abandon().unwrap();
    assert!(!runs(second));
}

#[test]
fn a_server_that_ends_by_itself_is_reaped() {
    let mut supervised = Supervised::new("brief", "false").unwrap();
    let pid = supervised.start().unwrap();
    while runs(pid) {}
    supervised.abandon().unwrap();
}

#[test]
fn a_program_that_does_not_start_is_told() {
    let mut supervised = Supervised::new("missing", "no-such-program").unwrap();
    assert!(supervised.start().is_err());
    supervised.abandon().unwrap();
}
