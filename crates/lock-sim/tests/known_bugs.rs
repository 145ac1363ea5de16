//! Known bugs are caught, and their failures become short stories that can be replayed.
//!
//! `cargo xtask sim --bugs` looks for all of them, and publishes how soon each is caught.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use lock_sim::bugs::{Bug, Known};
use lock_sim::campaign::{Played, catches};
use lock_sim::shrink::{Budget, Failure, minimize, story};
use lock_sim::{Run, RunOptions, Source, run, timeline};
use sim_runtime::{Draw, Tape};

fn play(source: Source, bug: Bug, record: bool) -> Run {
    let options = RunOptions {
        bug: Some(bug),
        record,
        ..RunOptions::default()
    };
    run(source, &options)
}

fn tape(draws: &[u64]) -> Source {
    let limit = u64::MAX;
    let draws = draws.iter().map(|&value| Draw { value, limit });
    Source::Tape(draws.collect::<Tape>())
}

/// Plays draws as long as they may make a smaller failure.
fn replay(draws: &[u64], bug: Bug, most: u64) -> Option<Failure> {
    let options = RunOptions {
        bug: Some(bug),
        record: false,
        most_entries: Some(most),
        ..RunOptions::default()
    };
    failure(&run(tape(draws), &options))
}

fn failure(run: &Run) -> Option<Failure> {
    Some(Failure {
        events: run.counters.entries,
        draws: run.tape.draws().iter().map(|draw| draw.value).collect(),
        violation: run.violations.first()?.clone(),
    })
}

/// The first seed that shows the bug of this name, of so many.
fn caught(name: &str, limit: u64) -> (Bug, u64, &'static str) {
    let bug = Known::named(name).unwrap().bug;
    let found = catches(1, limit, |seed| {
        Played::from(play(Source::Seed(seed), bug, false))
    });
    let catch = found
        .caught
        .first()
        .unwrap_or_else(|| panic!("{name} was not caught"));
    (bug, catch.seed, catch.violation.invariant.id())
}

#[test]
fn bugs_of_every_layer_are_caught_by_what_they_break() {
    for (name, broken) in [
        ("locks-without-comparing", &["INV-03"] as &[_]),
        ("locks-without-a-lease", &["INV-02", "INV-05"]),
        ("never-says-lost", &["INV-07", "INV-10"]),
        ("releases-in-name-only", &["INV-06"]),
        ("repeats-releases", &["INV-06"]),
        ("starts-tokens-anew", &["INV-01"]),
        ("grants-what-is-held", &["INV-01"]),
        ("lets-others-barge", &["INV-08"]),
    ] {
        let (_, seed, invariant) = caught(name, 60);
        assert!(
            broken.contains(&invariant),
            "{name}, seed {seed}: {invariant}"
        );
    }
}

#[test]
fn a_failure_becomes_a_short_story_that_its_tape_tells_again() {
    let (bug, seed, invariant) = caught("repeats-releases", 60);
    let first = failure(&play(Source::Seed(seed), bug, false)).unwrap();
    let events = first.events;
    let small = minimize(first, Budget { runs: 250 }, |draws, most| {
        replay(draws, bug, most)
    });
    assert!(small.failure.events <= events);
    let run = play(tape(&small.failure.draws), bug, true);
    let violation = run.violations.first().unwrap();
    assert_eq!(violation, &small.failure.violation);
    assert_eq!(violation.invariant.id(), invariant);
    let told = story(run.record.entries(), violation);
    assert!(told.events.len() <= 20, "{told}");
    assert!(told.to_string().ends_with(&violation.to_string()), "{told}");
    let picture = timeline::svg(run.record.entries(), Some(violation));
    assert!(
        picture.contains(invariant) && picture.contains("class=\"alarm\""),
        "{picture}"
    );
}
