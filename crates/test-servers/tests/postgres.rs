//! Postgres starts, fails on demand, comes back, and is gone afterwards.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use test_servers::{Authority, Mode, Postgres, Step};

#[path = "postgres/session.rs"]
mod session;

use session::{Session, runs};

/// More than a test ever waits for what does come.
const LONG: Duration = Duration::from_secs(10);
/// By which a client asks whether it may speak TLS; the answer is a single byte.
const ENCRYPTION_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";

fn has_listener(postgres: &Postgres) -> bool {
    TcpStream::connect(postgres.address()).is_ok()
}

#[test]
fn databases_are_made_empty_and_from_others() {
    let postgres = Postgres::start().unwrap();
    postgres.create_database("app").unwrap();
    let table = "CREATE TABLE color (name text); INSERT INTO color VALUES ('green'), ('red')";
    postgres.psql("app", table).unwrap();
    postgres.create_database_from("copy", "app").unwrap();
    let rows = postgres.psql("copy", "SELECT name, 1 FROM color").unwrap();
    assert_eq!(rows, "green|1\nred|1");
    assert!(postgres.create_database("app").is_err(), "there is one");

    let url = postgres.url("copy");
    let count = [
        "--tuples-only",
        "--command=SELECT count(*) FROM color",
        &url,
    ];
    assert_eq!(postgres.run_program("psql", &count).unwrap().trim(), "2");
    let dump = postgres.run_program("pg_dump", &["copy"]).unwrap();
    assert!(dump.contains("CREATE TABLE public.color"), "{dump}");
}

#[test]
fn a_failing_statement_is_told_and_the_last_one() {
    let postgres = Postgres::start().unwrap();
    let sql = "CREATE TABLE color (name text);\nSELECT 1/0;\nDROP TABLE color";
    let error = postgres.psql("postgres", sql).unwrap_err().to_string();
    assert!(error.contains("22012: division by zero"), "{error}");
    assert_eq!(postgres.psql("postgres", "TABLE color").unwrap(), "");
}

#[test]
fn settings_reach_the_server_and_a_wrong_one_is_told() {
    let postgres = Postgres::builder()
        .setting("max_connections", "7")
        .setting("cluster_name", "it's us")
        .start()
        .unwrap();
    let show = "SHOW max_connections; SHOW cluster_name; SHOW fsync; SHOW wal_level";
    let shown = postgres.psql("postgres", show).unwrap();
    assert_eq!(shown, "7\nit's us\noff\nreplica");

    let wrong = Postgres::builder().setting("max_connections", "many");
    let error = wrong.start().unwrap_err().to_string();
    assert!(error.contains("max_connections"), "{error}");
}

#[test]
fn with_a_password_nobody_comes_in_without() {
    let postgres = Postgres::builder().password("secret").start().unwrap();
    let admitted = |url: &str| {
        let arguments = ["--no-password", "--command=SELECT 1", url];
        postgres.run_program("psql", &arguments).is_ok()
    };
    let url = postgres.url("postgres");
    assert!(admitted(&url), "{url}");
    assert!(!admitted(&url.replace("secret", "guess")));
}

#[test]
fn with_a_certificate_nobody_comes_in_without_tls() {
    let authority = Authority::new().unwrap();
    let own = authority.issue(&["127.0.0.1"]).unwrap();
    let postgres = Postgres::builder().tls(&own).start().unwrap();
    let trusted = postgres.folder().join("authority.pem");
    fs::copy(authority.certificate(), &trusted).unwrap();
    let admitted = |mode: &str| {
        let url = postgres.url("postgres");
        let url = format!("{url}?sslmode={mode}&sslrootcert={}", trusted.display());
        postgres.run_program("psql", &["--command=SELECT 1", &url])
    };
    admitted("verify-full").unwrap();
    assert!(admitted("disable").is_err());

    let standby = postgres.standby().unwrap();
    standby.catch_up_with(&postgres).unwrap();
}

#[test]
fn whatever_way_it_ends_it_comes_back_with_its_data_where_it_was() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.url("postgres");
    postgres
        .psql("postgres", "CREATE TABLE ends (mode text)")
        .unwrap();
    for mode in [Mode::Smart, Mode::Fast, Mode::Immediate] {
        let insert = format!("INSERT INTO ends VALUES ('{mode:?}')");
        postgres.psql("postgres", &insert).unwrap();
        postgres.stop(mode).unwrap();
        assert!(!has_listener(&postgres), "{mode:?}");
        assert!(postgres.stop(mode).is_err(), "it is down");
        postgres.start_again().unwrap();
        assert!(postgres.start_again().is_err(), "it is up");
    }
    postgres.kill().unwrap();
    assert!(!has_listener(&postgres));
    assert!(postgres.kill().is_err(), "it is down");
    postgres.start_again().unwrap();
    assert_eq!(postgres.url("postgres"), url);
    let ends = postgres.psql("postgres", "TABLE ends").unwrap();
    assert_eq!(ends, "Smart\nFast\nImmediate");
    postgres.restart(Mode::Fast).unwrap();
}

/// P12: whoever starts the server at once after a kill finds nothing of the former one in its way.
#[test]
fn killed_again_and_again_it_starts_at_once() {
    let mut postgres = Postgres::start().unwrap();
    for _ in 0..5 {
        let session = Session::open(&postgres);
        postgres.pause_backend(session.pid).unwrap();
        postgres.kill().unwrap();
        assert!(!runs(session.pid), "a paused one is killed too");
        postgres.start_again().unwrap();
    }
}

/// P11: with the first process paused, open sessions go on and new ones hang.
#[test]
fn while_it_is_paused_open_sessions_go_on_and_new_ones_hang() {
    let postgres = Postgres::start().unwrap();
    let mut session = Session::open(&postgres);
    postgres.pause().unwrap();
    assert_eq!(session.ask("SELECT 1"), "1");
    let mut late = TcpStream::connect(postgres.address()).unwrap();
    late.write_all(ENCRYPTION_REQUEST).unwrap();
    late.set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let error = late.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    postgres.resume().unwrap();
    late.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(late.read(&mut [0]).unwrap(), 1);
}

#[test]
fn while_it_is_frozen_nothing_answers() {
    let postgres = Postgres::start().unwrap();
    let mut session = Session::open(&postgres);
    postgres.freeze().unwrap();
    session.send("SELECT 1");
    assert!(!session.says_something_within(Duration::from_millis(300)));
    postgres.thaw().unwrap();
    assert_eq!(session.receive(), "1");
}

#[test]
fn one_session_can_be_paused_and_ended_while_others_go_on() {
    let postgres = Postgres::start().unwrap();
    let (mut one, mut other) = (Session::open(&postgres), Session::open(&postgres));
    postgres.pause_backend(one.pid).unwrap();
    one.send("SELECT 1");
    assert_eq!(other.ask("SELECT 2"), "2");
    assert!(!one.says_something_within(Duration::from_millis(100)));
    postgres.resume_backend(one.pid).unwrap();
    assert_eq!(one.receive(), "1");

    postgres.terminate_backend(one.pid).unwrap();
    assert!(!runs(one.pid));
    assert_eq!(other.ask("SELECT 2"), "2");
    let itself = i32::try_from(std::process::id()).unwrap();
    assert!(
        postgres.kill_backend(itself).is_err(),
        "it is not the server's"
    );
}

/// P8: one killed session takes all others with it, and the server recovers.
#[test]
fn a_killed_session_ends_all_others_and_the_server_recovers() {
    let postgres = Postgres::start().unwrap();
    let (one, mut other) = (Session::open(&postgres), Session::open(&postgres));
    postgres.kill_backend(one.pid).unwrap();
    postgres.await_ready().unwrap();
    assert_eq!(postgres.psql("postgres", "SELECT 1").unwrap(), "1");
    assert_eq!(other.ask("SELECT 2"), "", "it has ended");
    assert!(
        postgres
            .log()
            .unwrap()
            .contains("all server processes terminated")
    );
}

/// P20: the clock on the wall steps; what counts time by a monotonic one is not concerned.
#[test]
fn its_clock_can_step_while_it_runs() {
    let postgres = Postgres::builder().faketime().start().unwrap();
    let now = || {
        let now = "SELECT extract(epoch FROM clock_timestamp())";
        let now = postgres.psql("postgres", now).unwrap();
        now.parse::<f64>().unwrap()
    };
    let hour = Duration::from_secs(3600);
    let begun = now();
    postgres.step_clock(hour, Step::Forward).unwrap();
    let later = now();
    assert!(
        (3600.0..3660.0).contains(&(later - begun)),
        "{begun} {later}"
    );
    postgres.step_clock(hour * 2, Step::Back).unwrap();
    let earlier = now();
    assert!(
        (-3600.0..-3540.0).contains(&(earlier - begun)),
        "{begun} {earlier}"
    );

    let usual = Postgres::start().unwrap();
    assert!(usual.step_clock(hour, Step::Back).is_err());
}

#[test]
fn a_copy_of_its_disk_is_another_server_with_the_same_data() {
    let postgres = Postgres::start().unwrap();
    postgres
        .psql("postgres", "CREATE TABLE color (name text)")
        .unwrap();
    let copy = postgres.copy_folder().unwrap();
    for server in [&postgres, &copy] {
        let insert = "INSERT INTO color VALUES ('green'); SELECT count(*) FROM color";
        assert_eq!(server.psql("postgres", insert).unwrap(), "1");
    }
    let identity = "SELECT system_identifier FROM pg_control_system()";
    assert_eq!(
        postgres.psql("postgres", identity).unwrap(),
        copy.psql("postgres", identity).unwrap()
    );
}

#[test]
fn servers_that_are_dropped_are_gone_even_by_a_panic() {
    let postgres = Postgres::start().unwrap();
    let (address, folder) = (postgres.address(), postgres.folder().to_owned());
    let session = Session::open(&postgres);
    postgres.freeze().unwrap();
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let _held = postgres;
        std::panic::resume_unwind(Box::new("planted"));
    }));
    assert!(panicked.is_err());
    assert!(TcpStream::connect(address).is_err());
    assert!(!runs(session.pid));
    assert!(!folder.parent().unwrap().exists());
}
