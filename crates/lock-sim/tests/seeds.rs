//! The code as it stands under every fault: hundreds of seeds, judged by every checker.
//!
//! `cargo xtask sim` plays many more, and tells the story of what it finds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::num::NonZero;
use std::process::Command;

use lock_sim::campaign::{Played, Seeds, survey};
use lock_sim::linear::{Limits, Linear, judge};
use lock_sim::record::{Answer, Entry, What};
use lock_sim::{Run, RunOptions, Source, run};

const SEEDS: u64 = 300;
/// One of so many is looked at more closely.
const CLOSELY: usize = 15;
/// Asks this program, as a child, for traces only.
const TRACES: &str = "FENCELOCK_PRINT_TRACES";

fn play(seed: u64, record: bool) -> Run {
    let options = RunOptions {
        record,
        ..RunOptions::default()
    };
    run(Source::Seed(seed), &options)
}

#[test]
fn hundreds_of_seeds_keep_every_invariant_and_go_one_way() {
    let cores = std::thread::available_parallelism();
    let workers = cores.unwrap_or(NonZero::<usize>::MIN);
    let seeds = Seeds::new(0, SEEDS);
    let report = survey(
        &seeds,
        workers,
        |seed| Played::from(play(seed, false)),
        |_| {},
    );
    let wrong: Vec<_> = report
        .wrong
        .iter()
        .map(|(seed, wrong)| format!("cargo xtask sim --seed {seed}: {wrong}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((report.seeds, report.twice), (SEEDS, SEEDS / 20));
}

#[test]
fn enough_happens_and_what_callers_were_told_is_linearizable() {
    let mut tally = [0_u32; 6];
    for seed in (0..SEEDS).step_by(CLOSELY) {
        let run = play(seed, true);
        let entries = run.record.entries();
        for (key, verdict) in judge(entries, Limits { steps: 1_000_000 }) {
            assert_eq!(verdict, Linear::Yes, "seed {seed}, {key}");
        }
        for (count, found) in tally.iter_mut().zip(counted(entries)) {
            *count += found;
        }
    }
    let [granted, released, in_vain, called_off, lost, refused] = tally;
    assert!(granted > 300, "{tally:?}");
    assert!(released > 200, "{tally:?}");
    assert!(in_vain > 50, "{tally:?}");
    assert!(called_off > 10, "{tally:?}");
    assert!(lost > 10, "{tally:?}");
    assert!(refused > 0, "{tally:?}");
}

fn counted(entries: &[Entry]) -> [u32; 6] {
    let count = |holds: fn(&What) -> bool| {
        let found = entries.iter().filter(|entry| holds(&entry.what)).count();
        u32::try_from(found).unwrap()
    };
    [
        count(|what| {
            matches!(
                what,
                What::Answered {
                    answer: Answer::Granted(_),
                    ..
                }
            )
        }),
        count(|what| {
            matches!(
                what,
                What::Answered {
                    answer: Answer::Released,
                    ..
                }
            )
        }),
        count(|what| {
            matches!(
                what,
                What::Answered {
                    answer: Answer::Held | Answer::Failed,
                    ..
                }
            )
        }),
        count(|what| {
            matches!(
                what,
                What::Answered {
                    answer: Answer::Cancelled,
                    ..
                }
            )
        }),
        count(|what| matches!(what, What::Lost { .. })),
        count(|what| {
            matches!(
                what,
                What::Wrote {
                    accepted: false,
                    ..
                }
            )
        }),
    ]
}

#[test]
fn a_seed_goes_the_same_way_in_another_process() {
    let traces: Vec<_> = (0..10)
        .map(|seed| format!("trace {seed} {:016x}", play(seed, false).hash))
        .collect();
    if std::env::var_os(TRACES).is_some() {
        println!("\n{}", traces.join("\n"));
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_seed_goes_the_same_way_in_another_process",
            "--nocapture",
        ])
        .env(TRACES, "1")
        .output()
        .unwrap();
    let told = String::from_utf8(child.stdout).unwrap();
    let told: Vec<_> = told
        .lines()
        .filter(|line| line.starts_with("trace "))
        .collect();
    assert_eq!(told, traces);
}
