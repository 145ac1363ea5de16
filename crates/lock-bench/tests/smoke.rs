//! The benchmark runs: every arm does its work on a real server, and table and chart come out.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the benchmark of a server, and expects these arms in every section of its table, and these
/// words in its chart.
fn expect_every_arm(server: &str, arms: &[&str], caption: &str) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("smoke");
    let run = Command::new(env!("CARGO_BIN_EXE_lock-bench"))
        .args([server, "--smoke", "--out"])
        .arg(&out)
        .output()
        .expect("the benchmark starts");
    let complaint = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{complaint}");
    let read = |kind| fs::read_to_string(out.join(format!("{server}.{kind}")));
    let table = read("md").expect("a table");
    for suite in ["## distinct keys, 2 tasks", "## one key for all, 2 tasks"] {
        let (_, section) = table.split_once(suite).expect("a section for each suite");
        let section = section.split("\n## ").next().unwrap_or_default();
        for arm in arms {
            let begin = format!("| {arm} |");
            assert!(
                section.lines().any(|line| line.starts_with(&begin)),
                "{section}"
            );
        }
    }
    let chart = read("svg").expect("a chart");
    assert!(chart.contains(caption), "{chart}");
}

#[test]
fn every_arm_works_on_a_real_etcd_and_is_in_table_and_chart() {
    let arms = [
        "raw put",
        "raw pair",
        "GRANT + DELETE",
        "store",
        "guards",
        "guards, a client each",
        "etcd's Lock + Unlock",
    ];
    expect_every_arm("etcd", &arms, "for each raw put");
}

#[test]
fn every_arm_works_on_a_real_postgres_and_is_in_table_and_chart() {
    let arms = [
        "raw pair",
        "functions",
        "store",
        "guards",
        "guards, a client each",
        "release, notify, grant",
        "advisory locks",
    ];
    expect_every_arm("postgres", &arms, "for each raw pair");
}
