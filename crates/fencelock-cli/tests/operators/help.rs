//! Help, manual and completions.

use std::fs;

use crate::command::run;
use crate::snapshots::assert_constant;

const NOWHERE: &str = "memory:";
const COMMANDS: [&str; 14] = [
    "completions",
    "doctor",
    "inspect",
    "list",
    "man",
    "migrate",
    "reap",
    "recover",
    "release",
    "revocations",
    "revoke",
    "sessions",
    "wait",
    "waiters",
];

#[test]
fn the_help_of_each_command_has_examples() {
    for command in COMMANDS {
        let help = run(NOWHERE, &[command, "--help"]).data();
        let example = format!("Examples:\n  fencelock {command}");
        assert!(help.contains(&example), "{help}");
        assert_constant(&format!("help_{command}"), &help);
    }
}

#[test]
fn there_is_a_page_of_the_manual_for_each_command() {
    let folder = std::env::temp_dir().join(format!("fencelock-man-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let written = run(NOWHERE, &["man", "--all", folder.to_str().unwrap()]);
    assert_eq!(written.status, 0, "{written:?}");
    for command in COMMANDS {
        let page = run(NOWHERE, &["man", command]).data();
        let file = fs::read_to_string(folder.join(format!("fencelock-{command}.1")));
        assert_eq!(file.unwrap(), page);
        assert!(
            page.contains(&format!(".TH fencelock-{command} 1")),
            "{page}"
        );
    }
    let root = run(NOWHERE, &["man"]).data();
    assert_eq!(
        fs::read_to_string(folder.join("fencelock.1")).unwrap(),
        root
    );
    fs::remove_dir_all(folder).unwrap();
    let unknown = run(NOWHERE, &["man", "steal"]);
    assert_eq!(unknown.status, 64);
    assert!(unknown.stderr.contains("revocations"), "{unknown:?}");
}

#[test]
fn each_shell_completes_each_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let completions = run(NOWHERE, &["completions", shell]).data();
        for command in COMMANDS {
            assert!(completions.contains(command), "{shell} lacks {command}");
        }
    }
}

/// The page for operators tells every status, with the words of the table.
#[test]
fn the_page_has_the_table_of_statuses() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command-line.md");
    let page = fs::read_to_string(page).unwrap();
    let help = run(NOWHERE, &["--help"]).data();
    let table = help.split("Exit status:\n").nth(1).unwrap();
    let rows: Vec<_> = table
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .filter(|(status, _)| status.parse::<u8>().is_ok())
        .collect();
    assert!(rows.len() > 10, "{table}");
    for (status, meaning) in rows {
        let row = format!("| {status} | {meaning}");
        assert!(page.contains(&row), "the page lacks {row:?}");
    }
}

/// Whoever reads the first line only ends it in silence.
#[test]
fn a_reader_that_leaves_ends_it_in_silence() {
    use std::io::Read;
    use std::process::Stdio;

    let mut command = crate::command::fencelock(NOWHERE, &["completions", "bash"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(told, "");
}
