//! Exit statuses, and what the command is given.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::process::{Run, fencelock};
use crate::scratch::Scratch;
use crate::servers::Server;

#[test]
fn the_status_is_the_commands_own() {
    let folder = Scratch::new();
    let table = [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 75", 75),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("kill -SEGV $$", 139),
    ];
    for (script, status) in table {
        let run = Run::script("memory:", &folder, &["k"], script);
        assert_eq!(run.status(), status, "{script}");
    }
}

/// B187.
#[test]
fn what_cannot_be_run_is_told_apart_and_keeps_no_lock() {
    let server = Server::postgres();
    let folder = Scratch::new();
    let plain = folder.file("plain");
    fs::write(&plain, "echo").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    for (program, status) in [("no-such-command", 127), ("./plain", 126), (".", 126)] {
        let run = Run::command(&server.url(), &folder, &["k"], &[program]);
        let ended = run.ended();
        assert_eq!(ended.status.code(), Some(status), "{ended:?}");
        assert!(ended.stderr.contains(program), "{ended:?}");
        assert!(server.is_free("k"), "{program}");
    }
}

#[test]
fn the_command_finds_its_grant_in_the_environment_whatever_was_there_before() {
    let folder = Scratch::new();
    let program = env!("CARGO_BIN_EXE_fencelock");
    let inner = "echo $FENCELOCK_KEY $FENCELOCK_TOKEN $FENCELOCK_DEADLINE > inner; date +%s > now";
    let outer = format!(
        "echo $FENCELOCK_KEY $FENCELOCK_TOKEN $FENCELOCK_DEADLINE > outer
         {program} run inner/key --store memory: -- sh -c '{inner}'"
    );
    let run = Run::script("memory:", &folder, &["outer key", "--ttl", "20s"], &outer);
    assert_eq!(run.status(), 0);
    let line = folder.lines("outer").remove(0);
    let (rest, _) = line
        .strip_prefix("outer key ")
        .unwrap()
        .split_once(' ')
        .unwrap();
    assert!(rest.parse::<u64>().unwrap() > 0);
    let inner = folder.lines("inner").remove(0);
    let words: Vec<_> = inner.split(' ').collect();
    assert_eq!(words[0], "inner/key");
    assert!(words[1].parse::<u64>().unwrap() > 0);
    let left = words[2].parse::<f64>().unwrap() - folder.number("now") as f64;
    assert!(
        (5.0..15.0).contains(&left),
        "{left} s of 15 s less the margin"
    );
}

#[test]
fn the_command_has_the_input_and_the_outputs_of_fencelock() {
    let folder = Scratch::new();
    let mut child = fencelock("memory:", &folder)
        .args(["run", "k", "--", "sh", "-c", "cat; echo oops >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"data\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"data\n", "and nothing of fencelock's own");
    assert!(output.stderr.ends_with(b"oops\n"));
}

#[test]
fn what_makes_no_sense_and_what_cannot_be_reached_have_statuses_of_their_own() {
    let folder = Scratch::new();
    let table: [(&str, &[&str], i32, &str); 6] = [
        ("memory:", &[""], 64, "key \"\""),
        ("memory:", &["k", "--ttl", "1ms"], 64, "ttl"),
        ("memory:", &["k", "--wait", "soon"], 64, "look like 15s"),
        ("redis://h", &["k"], 64, "redis"),
        ("memory:", &["k", "--namespace", "A"], 64, "\"A\""),
        ("postgres://nobody@127.0.0.1:1/app", &["k"], 69, "hint:"),
    ];
    for (store, options, status, words) in table {
        let ended = Run::script(store, &folder, options, "echo > began").ended();
        assert_eq!(ended.status.code(), Some(status), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    assert!(!folder.has("began"));
}

#[test]
fn failures_are_a_document_for_machines() {
    let folder = Scratch::new();
    let ended = Run::script("memory:", &folder, &["", "--json"], "true").ended();
    let document: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(document["error"]["exit"], 64);
    assert_eq!(document["error"]["kind"], "usage");
}

#[test]
fn the_embedded_store_and_too_much_grace_are_warned_of() {
    let folder = Scratch::new();
    let options = ["k", "--ttl", "8s", "--grace", "3s"];
    let ended = Run::script("memory:", &folder, &options, "true").ended();
    assert!(ended.stderr.contains("excludes nobody else"), "{ended:?}");
    assert!(
        ended.stderr.contains("2s it is; a ttl of 12s would do"),
        "{ended:?}"
    );
}
