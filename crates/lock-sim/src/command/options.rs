use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use lock_sim::bugs::{Bug, KNOWN, Known};

/// Plays whole lock clients in a simulated world, with every fault, and checks the invariants.
#[derive(Clone, Debug, Parser)]
#[command(name = "lock-sim")]
pub(crate) struct Options {
    /// How many seeds to play.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    pub(crate) first: u64,
    /// Play this one seed, and tell what happened.
    #[arg(long, conflicts_with_all = ["time", "tape", "bugs", "bench"])]
    seed: Option<u64>,
    /// Play seeds for so long, however many there are: `90s`, `10m`, `2h`.
    #[arg(long, value_parser = duration, conflicts_with = "seeds")]
    pub(crate) time: Option<Duration>,
    /// Replay what an earlier run wrote.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bugs", "bench"])]
    tape: Option<PathBuf>,
    /// Plant a known bug.
    #[arg(long, value_name = "NAME")]
    bug: Option<String>,
    /// Look for all known bugs, and write the table of them.
    #[arg(long, conflicts_with = "bench")]
    bugs: bool,
    /// How often each known bug is looked for.
    #[arg(long, default_value_t = 11, value_name = "N")]
    pub(crate) times: u64,
    /// How many seeds are played at most, each time that a known bug is looked for.
    #[arg(long, default_value_t = 3000, value_name = "N")]
    pub(crate) limit: u64,
    /// The document that the table of known bugs stands in.
    #[arg(long, default_value = "docs/simulator.md", value_name = "FILE")]
    pub(crate) table: PathBuf,
    /// Measure how fast it is.
    #[arg(long)]
    bench: bool,
    /// How many worlds at a time; as many as there are cores, if not told.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
    /// Where stories of failures are written.
    #[arg(long, default_value = "target/sim", value_name = "FOLDER")]
    pub(crate) stories: PathBuf,
    /// How many runs may be spent on making a failure small.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    pub(crate) shrink: usize,
}

/// What is to be done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Task {
    Bench,
    Bugs,
    Seed(u64),
    Seeds,
    Tape(PathBuf),
}

impl Options {
    pub(crate) fn task(&self) -> Result<Task> {
        // A name that does not exist is told before anything is played.
        self.bug()?;
        Ok(match (self.seed, &self.tape) {
            (Some(seed), _) => Task::Seed(seed),
            (None, Some(path)) => Task::Tape(path.clone()),
            (None, None) if self.bugs => Task::Bugs,
            (None, None) if self.bench => Task::Bench,
            (None, None) => Task::Seeds,
        })
    }

    pub(crate) fn bug(&self) -> Result<Option<Bug>> {
        self.bug.as_deref().map(named).transpose()
    }

    pub(crate) fn jobs(&self) -> NonZero<usize> {
        let cores = std::thread::available_parallelism();
        self.jobs.or(cores.ok()).unwrap_or(NonZero::<usize>::MIN)
    }
}

pub(crate) fn named(name: &str) -> Result<Bug> {
    let Some(known) = Known::named(name) else {
        let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
        bail!(
            "no known bug is called {name:?}; these are: {}",
            names.join(", ")
        );
    };
    Ok(known.bug)
}

fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => bail!("{text:?} is no time: a number and one of s, m and h, such as 10m"),
    };
    let count: u64 = digits
        .parse()
        .with_context(|| format!("{digits:?} is no number"))?;
    Ok(Duration::from_secs(count.saturating_mul(unit)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(words: &[&str]) -> Options {
        Options::try_parse_from([&["lock-sim"], words].concat()).unwrap()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn options_name_one_task() {
        for (words, task) in [
            (&[] as &[&str], Task::Seeds),
            (&["--seeds", "5"], Task::Seeds),
            (&["--time", "10m"], Task::Seeds),
            (&["--seed", "7", "--bug", "never-says-lost"], Task::Seed(7)),
            (&["--tape", "t.json"], Task::Tape("t.json".into())),
            (&["--bugs"], Task::Bugs),
            (&["--bench"], Task::Bench),
        ] {
            assert_eq!(parsed(words).task().unwrap(), task, "{words:?}");
        }
    }

    #[test]
    fn a_bug_that_does_not_exist_is_told_with_those_that_do() {
        let error = parsed(&["--bug", "no-such"])
            .task()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no-such") && error.contains("never-says-lost"),
            "{error}"
        );
    }

    #[test]
    fn times_are_read() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("2h", 7200)] {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds));
        }
        for text in ["", "10", "m", "1.5m", "10 m", "-1s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
