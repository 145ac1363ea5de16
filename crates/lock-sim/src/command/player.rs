use lock_sim::bugs::Bug;
use lock_sim::campaign::Played;
use lock_sim::shrink::Failure;
use lock_sim::{Run, RunOptions, Source, run};
use sim_runtime::{Draw, Tape};

/// Plays runs of the usual kind, with a bug or without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Player {
    bug: Option<Bug>,
}

impl Player {
    pub(crate) const fn new(bug: Option<Bug>) -> Self {
        Self { bug }
    }

    pub(crate) const fn bug(self) -> Option<Bug> {
        self.bug
    }

    /// What brings the bug back on the command line.
    pub(crate) fn bug_option(self) -> String {
        let bug = self.bug.map(|bug| format!(" --bug {}", bug.name()));
        bug.unwrap_or_default()
    }

    /// What tells files of runs with this bug from others.
    pub(crate) fn suffix(self) -> String {
        let bug = self.bug.map(|bug| format!("-{}", bug.name()));
        bug.unwrap_or_default()
    }

    /// Plays a seed, and keeps nothing but what it came to.
    pub(crate) fn play(self, seed: u64) -> Played {
        self.seed(seed).into()
    }

    /// Plays a seed without a record.
    pub(crate) fn seed(self, seed: u64) -> Run {
        run(Source::Seed(seed), &self.options(false))
    }

    /// Plays a seed and keeps the record.
    pub(crate) fn seed_in_full(self, seed: u64) -> Run {
        run(Source::Seed(seed), &self.options(true))
    }

    /// Plays these draws without a record, for at most so many events.
    pub(crate) fn draws(self, draws: &[u64], most: u64) -> Run {
        let options = RunOptions {
            most_entries: Some(most),
            ..self.options(false)
        };
        run(Source::Tape(tape(draws)), &options)
    }

    /// Plays these draws and keeps the record.
    pub(crate) fn draws_in_full(self, draws: &[u64]) -> Run {
        run(Source::Tape(tape(draws)), &self.options(true))
    }

    fn options(self, record: bool) -> RunOptions {
        RunOptions {
            bug: self.bug,
            record,
            ..RunOptions::default()
        }
    }
}

/// A tape as it is replayed: each draw is lowered below the limit that it meets.
fn tape(draws: &[u64]) -> Tape {
    let draws = draws.iter().map(|&value| Draw {
        value,
        limit: u64::MAX,
    });
    draws.collect()
}

/// What went wrong in a run, and the draws that led to it.
pub(crate) fn failure_of(run: &Run) -> Option<Failure> {
    Some(Failure {
        violation: run.violations.first()?.clone(),
        events: run.counters.entries,
        draws: run.tape.draws().iter().map(|draw| draw.value).collect(),
    })
}
