//! No server outlives the process that started it.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use test_servers::Etcd;

/// Set for the process that is killed, which is this test once more.
const DOOMED: &str = "TEST_SERVERS_DOOMED";
const SERVES: &str = "serves at ";

#[test]
fn a_killed_process_leaves_neither_a_server_nor_a_folder() {
    if env::var_os(DOOMED).is_some() {
        return hold_a_paused_server().unwrap();
    }
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("doomed");
    fs::create_dir_all(&temporary).unwrap();
    let mut process = Command::new(env::current_exe().unwrap())
        .arg("--nocapture")
        .env(DOOMED, "1")
        .env("TMPDIR", &temporary)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    let endpoint = lines.find_map(|line| Some(line.split_once(SERVES)?.1.to_owned()));
    let endpoint = endpoint.unwrap();
    assert!(TcpStream::connect(&endpoint).is_ok());

    process.kill().unwrap();
    process.wait().unwrap();
    // The supervisor has the same standard error: it is closed once that has ended too.
    let mut complaints = String::new();
    let mut errors = process.stderr.take().unwrap();
    errors.read_to_string(&mut complaints).unwrap();
    assert!(TcpStream::connect(&endpoint).is_err());
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0, "{complaints}");
}

/// A paused one is the hardest to end.
fn hold_a_paused_server() -> anyhow::Result<()> {
    let etcd = Etcd::start()?;
    etcd.pause(0)?;
    writeln!(io::stdout(), "\n{SERVES}{}", etcd.endpoints().join(","))?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
