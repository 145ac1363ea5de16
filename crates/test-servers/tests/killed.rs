//! No server outlives the process that started it.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use test_servers::{Etcd, Postgres};

/// Set for the process that is killed, which is the same test once more.
const DOOMED: &str = "TEST_SERVERS_DOOMED";
const SERVES: &str = "serves at ";

#[test]
fn a_killed_process_leaves_neither_an_etcd_nor_a_folder() {
    if env::var_os(DOOMED).is_some() {
        return hold_a_paused_etcd().unwrap();
    }
    kill_once_more("a_killed_process_leaves_neither_an_etcd_nor_a_folder");
}

#[test]
fn a_killed_process_leaves_neither_a_postgres_nor_a_folder() {
    if env::var_os(DOOMED).is_some() {
        return hold_frozen_postgres().unwrap();
    }
    kill_once_more("a_killed_process_leaves_neither_a_postgres_nor_a_folder");
}

/// Runs this test in a process that is killed while its servers run.
#[track_caller]
fn kill_once_more(test: &str) {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&temporary).unwrap();
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--nocapture", "--exact", test])
        .env(DOOMED, "1")
        .env("TMPDIR", &temporary)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    let servers = lines.find_map(|line| Some(line.split_once(SERVES)?.1.to_owned()));
    let servers = servers.unwrap();
    let servers: Vec<_> = servers
        .split(',')
        .map(|server| server.split_once('=').unwrap())
        .collect();
    for (address, _) in &servers {
        assert!(TcpStream::connect(address).is_ok(), "{address}");
    }

    process.kill().unwrap();
    process.wait().unwrap();
    // The supervisors have the same standard error: it is closed once they have ended too.
    let mut complaints = String::new();
    let mut errors = process.stderr.take().unwrap();
    errors.read_to_string(&mut complaints).unwrap();
    for (address, pid) in servers {
        assert!(TcpStream::connect(address).is_err(), "{address}");
        assert!(!has_left_shared_memory(pid), "{pid}");
    }
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0, "{complaints}");
}

/// A paused one is the hardest to end.
fn hold_a_paused_etcd() -> anyhow::Result<()> {
    let etcd = Etcd::start()?;
    etcd.pause(0)?;
    await_death(&[(etcd.endpoints().concat(), etcd.process(0)?)])
}

/// Frozen ones are the hardest to end, as none of their processes ends with another.
fn hold_frozen_postgres() -> anyhow::Result<()> {
    let primary = Postgres::start()?;
    let standby = primary.standby()?;
    standby.freeze()?;
    primary.freeze()?;
    let servers = [primary, standby];
    let told = servers
        .each_ref()
        .map(|server| (server.address(), server.process().unwrap()));
    await_death(&told)
}

/// Tells where servers are and by which processes, and waits.
fn await_death(servers: &[(String, u32)]) -> anyhow::Result<()> {
    let servers = servers.iter();
    let servers: Vec<_> = servers
        .map(|(address, pid)| format!("{address}={pid}"))
        .collect();
    writeln!(io::stdout(), "\n{SERVES}{}", servers.join(","))?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Whether this process has made shared memory that outlives it, as a server does that is killed.
fn has_left_shared_memory(pid: &str) -> bool {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    // The fifth column is who made it.
    let mut makers = table
        .lines()
        .filter_map(|line| line.split_whitespace().nth(4));
    makers.any(|maker| maker == pid)
}
