//! Many seeds.

use anyhow::Result;
use lock_sim::Fault;
use lock_sim::campaign::{Report, Seeds, survey};
use lock_sim::check::LockState;

use crate::clock::Clock;
use crate::failure;
use crate::options::Options;
use crate::player::Player;
use crate::progress;

/// So many failures are enough: the first of them is told.
const ENOUGH: usize = 20;
/// In fewer seeds than this not everything has to be met.
const ENOUGH_TO_MEET_ALL: u64 = 2_000;

pub(crate) fn run(options: &Options) -> Result<bool> {
    let player = Player::new(options.bug()?);
    let end = match options.time {
        Some(_) => u64::MAX,
        None => options.first.saturating_add(options.seeds),
    };
    let seeds = Seeds::new(options.first, end);
    let bar = progress::bar(options.time.is_none().then_some(options.seeds));
    let clock = Clock::start();
    let report = survey(
        &seeds,
        options.jobs(),
        |seed| player.play(seed),
        |report| {
            bar.set_position(report.seeds);
            if !report.wrong.is_empty() {
                bar.set_message(format!("{} wrong", report.wrong.len()));
            }
            let long_enough = options.time.is_some_and(|time| clock.elapsed() >= time);
            if long_enough || report.wrong.len() >= ENOUGH {
                seeds.stop();
            }
        },
    );
    bar.finish_and_clear();
    tell(&report, clock, options);
    if let Some((seed, wrong)) = report.wrong.first_key_value() {
        println!("\nSeed {seed}: {wrong}");
        failure::explain(options, player, *seed, wrong)?;
    }
    let planted = options.bug()?.is_some();
    Ok(report.wrong.is_empty() && (planted || all_is_met(&report)))
}

fn tell(report: &Report, clock: Clock, options: &Options) {
    let seconds = clock.elapsed().as_secs_f64();
    let played = f64::from(u32::try_from(report.seeds).unwrap_or(u32::MAX));
    println!(
        "{} seeds in {seconds:.1} s, {:.0} a second on {} at a time; {} of them twice; {} wrong.",
        report.seeds,
        played / seconds,
        options.jobs(),
        report.twice,
        report.wrong.len()
    );
    let listed: Vec<_> = report.wrong.keys().map(u64::to_string).collect();
    if !listed.is_empty() {
        println!("Wrong seeds: {}", listed.join(", "));
    }
}

/// Whether each fault was met in each state of a lock; in a long run, all must have been.
fn all_is_met(report: &Report) -> bool {
    if report.seeds < ENOUGH_TO_MEET_ALL {
        return true;
    }
    let faults = Fault::ALL.iter().map(|fault| fault.name());
    let missing: Vec<_> = report
        .met
        .missing(faults)
        .filter(|cell| !is_impossible(*cell))
        .map(|(fault, state)| format!("{fault} while {state}"))
        .collect();
    if !missing.is_empty() {
        println!("\nNever met: {}", missing.join(", "));
    }
    missing.is_empty()
}

/// Faults that cannot be met in a state, and why.
const IMPOSSIBLE: &[(&str, LockState, &str)] = &[];

fn is_impossible((fault, state): (&str, LockState)) -> bool {
    IMPOSSIBLE
        .iter()
        .any(|(known, at, _)| *known == fault && *at == state)
}
