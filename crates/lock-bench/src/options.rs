use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::arms::Keys;
use crate::backend::Kind;
use crate::suite::Suite;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options<K: Kind> {
    /// How often every arm runs.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repetitions: u32,
    /// How long an arm runs each time, in seconds.
    #[arg(long, default_value = "0.5", value_parser = seconds)]
    pub(crate) slice: Duration,
    /// The numbers of tasks that work side by side.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64])]
    pub(crate) clients: Vec<u32>,
    /// Only these arms, to look at one of them with a profiler; all unless given.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) arms: Vec<K>,
    /// Which keys: all kinds unless given.
    #[arg(long, value_enum)]
    pub(crate) keys: Option<Keys>,
    /// The server waits for its disk; otherwise it leaves that out if it can.
    #[arg(long)]
    pub(crate) server_fsync: bool,
    /// The folder for table and chart.
    #[arg(long, default_value = "target/bench")]
    pub(crate) out: PathBuf,
    /// Only see whether everything runs: one short repetition with two tasks.
    #[arg(long, conflicts_with_all = ["repetitions", "slice", "clients"])]
    pub(crate) smoke: bool,
}

impl<K: Kind> Options<K> {
    /// With what `smoke` stands for.
    pub(crate) fn settled(mut self) -> Self {
        if self.smoke {
            self.repetitions = 1;
            self.slice = Duration::from_millis(100);
            self.clients = vec![2];
        }
        if self.arms.is_empty() {
            self.arms = K::value_variants().into();
        }
        self
    }

    /// What is measured. One task alone has nobody to wait for: on one key for all there are two.
    pub(crate) fn suites(&self) -> Vec<Suite> {
        let wanted = |keys: &Keys| self.keys.is_none_or(|only| only == *keys);
        let kinds = Keys::value_variants().iter().copied().filter(wanted);
        kinds
            .flat_map(|keys| {
                let least = match keys {
                    Keys::Distinct => 1,
                    Keys::Hot | Keys::Held => 2,
                };
                let tasks = self.clients.iter().map(move |&tasks| tasks.max(least));
                tasks.map(move |tasks| Suite { keys, tasks })
            })
            .collect()
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("not a length of time".to_owned()),
    }
}
