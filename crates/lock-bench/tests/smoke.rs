//! The benchmark runs: every arm does its work on a real server, and table and chart come out.

use std::fs;
use std::path::Path;
use std::process::Command;

const ARMS: [&str; 6] = [
    "raw put",
    "raw pair",
    "GRANT + DELETE",
    "store",
    "guards",
    "etcd's Lock + Unlock",
];

#[test]
fn every_arm_works_on_a_real_server_and_is_in_table_and_chart() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("smoke");
    let run = Command::new(env!("CARGO_BIN_EXE_lock-bench"))
        .args(["etcd", "--smoke", "--out"])
        .arg(&out)
        .output()
        .expect("the benchmark starts");
    let complaint = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{complaint}");
    let table = fs::read_to_string(out.join("etcd.md")).expect("a table");
    for suite in ["## distinct keys, 2 tasks", "## one key for all, 2 tasks"] {
        let (_, section) = table.split_once(suite).expect("a section for each suite");
        let section = section.split("\n## ").next().unwrap_or_default();
        for arm in ARMS {
            let begin = format!("| {arm} |");
            assert!(
                section.lines().any(|line| line.starts_with(&begin)),
                "{section}"
            );
        }
    }
    let chart = fs::read_to_string(out.join("etcd.svg")).expect("a chart");
    assert!(chart.contains("GRANT + DELETE"), "{chart}");
}
