use std::collections::BTreeMap;
use std::fmt;

use crate::check::{Met, Violation};
use crate::run::Run;

/// One seed that was played.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Of everything that happened.
    pub hash: u64,
    /// What went wrong first.
    pub violation: Option<Violation>,
    /// Which faults met which states of locks.
    pub met: Met,
}

impl From<Run> for Played {
    fn from(run: Run) -> Self {
        Self {
            hash: run.hash,
            violation: run.violations.into_iter().next(),
            met: run.met,
        }
    }
}

/// What is wrong with a seed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wrong {
    /// An invariant broke.
    Broken(Violation),
    /// Playing it panicked.
    Panicked(String),
    /// Played twice, it went two ways.
    TwoWays(u64, u64),
}

/// What many seeds came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many were played; those that were played twice count once.
    pub seeds: u64,
    /// How many were played twice.
    pub twice: u64,
    /// What is wrong, by seed.
    pub wrong: BTreeMap<u64, Wrong>,
    /// Which faults met which states of locks.
    pub met: Met,
}

impl Report {
    /// Takes in a seed that was played, and its second time if it had one.
    pub fn add(&mut self, seed: u64, first: Result<Played, String>, second: Option<u64>) {
        self.seeds += 1;
        self.twice += u64::from(second.is_some());
        let played = match first {
            Ok(played) => played,
            Err(words) => {
                self.wrong.insert(seed, Wrong::Panicked(words));
                return;
            }
        };
        self.met.add(&played.met);
        let two_ways = second.filter(|second| *second != played.hash);
        let wrong = match (two_ways, played.violation) {
            (Some(second), _) => Wrong::TwoWays(played.hash, second),
            (None, Some(violation)) => Wrong::Broken(violation),
            (None, None) => return,
        };
        self.wrong.insert(seed, wrong);
    }

    /// Takes in what another worker did.
    pub fn merge(&mut self, other: Self) {
        let Self {
            seeds,
            twice,
            wrong,
            met,
        } = other;
        self.seeds += seeds;
        self.twice += twice;
        self.wrong.extend(wrong);
        self.met.add(&met);
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(violation) => violation.fmt(f),
            Self::Panicked(words) => write!(f, "the run panicked: {words}"),
            Self::TwoWays(first, second) => {
                write!(
                    f,
                    "played twice it went two ways: {first:016x}, {second:016x}"
                )
            }
        }
    }
}
