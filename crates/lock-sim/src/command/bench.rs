//! How fast it plays: what is asked of it, and what it does.

use std::time::Duration;

use lock_sim::{Faults, RunOptions, Source, run};

use crate::clock::Clock;
use crate::options::Options;

/// Each is measured for so long.
const LONG_ENOUGH: Duration = Duration::from_secs(10);

pub(crate) fn run_all(options: &Options) -> bool {
    println!("On one core, checkers on, without a record:");
    let usual = RunOptions {
        clients: Some(5),
        simulated_time: Duration::from_secs(60),
        record: false,
        ..RunOptions::default()
    };
    let busy = measure(&usual, options.first);
    println!(
        "  {:.0} seeds a second of 60 simulated seconds with 5 clients and faults (goal: 100); {:.0} events each",
        busy.seeds / busy.seconds,
        busy.events / busy.seeds
    );
    let quiet = RunOptions {
        faults: Faults::none(),
        simulated_time: Duration::from_secs(3600),
        ..usual
    };
    let calm = measure(&quiet, options.first);
    println!(
        "  {:.2} simulated hours a second of a quiet world with 5 clients (goal: 1)",
        calm.simulated / 3600.0 / calm.seconds
    );
    println!(
        "  {:.0} thousand events judged a second",
        (busy.events + calm.events) / 1000.0 / (busy.seconds + calm.seconds)
    );
    true
}

#[derive(Default)]
struct Measured {
    seeds: f64,
    seconds: f64,
    simulated: f64,
    events: f64,
}

fn measure(options: &RunOptions, first: u64) -> Measured {
    let clock = Clock::start();
    let mut measured = Measured::default();
    for seed in first.. {
        let run = run(Source::Seed(seed), options);
        if !run.violations.is_empty() {
            println!("  seed {seed}: {}", run.violations[0]);
        }
        measured.seeds += 1.0;
        measured.simulated += run.counters.simulated.as_secs_f64();
        measured.events += f64::from(u32::try_from(run.counters.entries).unwrap_or(u32::MAX));
        measured.seconds = clock.elapsed().as_secs_f64();
        if clock.elapsed() >= LONG_ENOUGH {
            break;
        }
    }
    measured
}
