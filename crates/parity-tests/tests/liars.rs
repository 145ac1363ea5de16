//! Each lie is caught by the scenario that is said to catch it, on the embedded store; and a wrapper
//! that tells none passes the suite.

#[path = "../../store-etcd/tests/deployment/mod.rs"]
mod deployment;
mod embedded;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parity_tests::liars::{Caught, LIES, Lie, LyingDeployment};
use parity_tests::{Fixture, SCENARIOS, Scenario, Stop, Verdict};

use crate::embedded::embedded;

mod honest {
    use super::*;

    parity_tests::suite!(Honest);

    /// The wrapper itself is faithful: what the liars fail, they fail by their lies.
    struct Honest;

    impl Fixture for Honest {
        fn run(scenario: &Scenario) -> Verdict {
            play(scenario, None, 1)
        }
    }
}

fn play(scenario: &Scenario, lie: Option<Lie>, seed: u64) -> Verdict {
    embedded(seed, |deployment| {
        scenario.play(std::sync::Arc::new(LyingDeployment::new(deployment, lie)))
    })
}

fn scenario(name: &str) -> &'static Scenario {
    let known = SCENARIOS.iter().find(|scenario| scenario.name == name);
    known.unwrap_or_else(|| panic!("there is no scenario {name}"))
}

/// Whether the scenario fails, and not by an exception.
fn catches(scenario: &Scenario, lie: Lie, seed: u64) -> bool {
    match catch_unwind(AssertUnwindSafe(|| play(scenario, Some(lie), seed))) {
        Err(_) | Ok(Err(Stop::Failed { .. })) => true,
        Ok(Err(stop)) => panic!("{}: {stop}", scenario.name),
        Ok(Ok(())) => false,
    }
}

#[test]
fn every_lie_is_caught_by_its_scenario_whatever_the_seed() {
    let missed: Vec<_> = LIES
        .iter()
        .flat_map(|caught| (0..4).map(move |seed| (caught, seed)))
        .filter(|(caught, seed)| !catches(scenario(caught.scenario), caught.lie, *seed))
        .map(|(Caught { lie, scenario, .. }, seed)| format!("{lie:?}: {scenario}, seed {seed}"))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn every_clause_has_a_lie_that_breaks_it_and_every_scenario_shows_its_clause() {
    let clauses: BTreeSet<_> = SCENARIOS
        .iter()
        .flat_map(|scenario| scenario.clauses)
        .collect();
    let broken: BTreeSet<_> = LIES.iter().map(|caught| &caught.clause).collect();
    let unbroken: Vec<_> = clauses.difference(&broken).collect();
    assert!(unbroken.is_empty(), "no lie breaks {unbroken:?}");
    for caught in LIES {
        let shown = scenario(caught.scenario).clauses;
        assert!(shown.contains(&caught.clause), "{caught:?} shows {shown:?}");
        assert_eq!(caught.lie.caught(), Some(caught));
    }
}
