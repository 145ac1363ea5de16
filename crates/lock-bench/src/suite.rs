//! All arms against one another, at one number of tasks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use lock_spi::Runtime;

use crate::arms::{Keys, Site};
use crate::backend::{Backend, Kind};
use crate::hold::Hold;
use crate::options::Options;
use crate::slice::{Run, Slice};
use crate::statistics::Spread;

/// What is measured together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Suite {
    pub(crate) keys: Keys,
    pub(crate) tasks: u32,
}

/// What all arms of a suite did: of each, one slice for every repetition.
#[derive(Clone, Debug)]
pub(crate) struct Outcome<K> {
    pub(crate) suite: Suite,
    pub(crate) measured: Vec<Measured<K>>,
}

/// What one arm did.
#[derive(Clone, Debug)]
pub(crate) struct Measured<K> {
    pub(crate) kind: K,
    pub(crate) slices: Vec<Slice>,
}

impl Suite {
    /// Runs it on a server that nobody has used.
    pub(crate) async fn run<B: Backend>(
        self,
        server: &B,
        options: &Options<B::Kind>,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<Outcome<B::Kind>> {
        let Self { keys, tasks } = self;
        let mut arms = Vec::new();
        let mut measured = Vec::new();
        for &kind in &options.arms {
            let hold = Hold::new(keys, runtime);
            let site = Site {
                keys,
                tasks,
                runtime: Arc::clone(runtime),
                hold: hold.clone(),
            };
            let run = Run {
                keys,
                tasks: self.tasks_of(kind),
                length: options.slice * keys.slices(),
                server: server.process()?,
                runtime: Arc::clone(runtime),
                hold,
            };
            let arm = server.connect(kind, &site).await;
            let arm = arm.with_context(|| format!("{} cannot begin", kind.name()))?;
            arms.push((kind, arm, run));
            let slices = Vec::new();
            measured.push(Measured { kind, slices });
        }
        for repetition in 0..usize::try_from(options.repetitions)? {
            for index in order(repetition, arms.len()) {
                let (kind, arm, run) = &arms[index];
                let slice = run.slice(arm).await;
                let slice = slice.with_context(|| format!("{}, {self}", kind.name()))?;
                measured[index].slices.push(slice);
            }
        }
        let suite = self;
        Ok(Outcome { suite, measured })
    }

    fn tasks_of<K: Kind>(self, kind: K) -> u32 {
        match self.keys {
            Keys::Hot | Keys::Held if kind.is_alone() => 1,
            _ => self.tasks,
        }
    }
}

/// In which order the arms run: each repetition begins with another one, and every second goes
/// backwards, so that none always follows the same.
fn order(repetition: usize, arms: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..arms).collect();
    order.rotate_left(repetition % arms);
    if repetition % 2 == 1 {
        order.reverse();
    }
    order
}

impl<K: Kind> Outcome<K> {
    /// The writes of an arm for each write of another, as formed in each repetition by itself.
    pub(crate) fn ratio(&self, kind: K, base: K) -> Option<Spread> {
        let rates = |kind: K| {
            let found = self.measured.iter().find(|found| found.kind == kind);
            let slices = found.map_or(&[][..], |found| &found.slices);
            slices.iter().map(move |slice| slice.rate * kind.writes())
        };
        let ratios = rates(kind).zip(rates(base)).map(|(own, base)| own / base);
        Spread::of(ratios.filter(|ratio| ratio.is_finite()))
    }
}

impl<K> Measured<K> {
    /// Operations in a second.
    pub(crate) fn rate(&self) -> Option<Spread> {
        Spread::of(self.slices.iter().map(|slice| slice.rate))
    }

    /// The latency in the middle of each slice, in seconds.
    pub(crate) fn latency(&self) -> Option<Spread> {
        self.seconds(|slice| slice.latency)
    }

    /// The server's processor time for one operation, in seconds.
    pub(crate) fn server_cpu(&self) -> Option<Spread> {
        self.seconds(|slice| slice.server_cpu)
    }

    /// The processor time of one operation in this process, in seconds.
    pub(crate) fn client_cpu(&self) -> Option<Spread> {
        self.seconds(|slice| slice.client_cpu)
    }

    fn seconds(&self, of: impl Fn(&Slice) -> Option<Duration>) -> Option<Spread> {
        let durations = self.slices.iter().filter_map(of);
        Spread::of(durations.map(|duration| duration.as_secs_f64()))
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = match self.keys {
            Keys::Distinct => "distinct keys",
            Keys::Hot => "one key for all",
            Keys::Held => "one key for all, held for 3 ms",
        };
        let tasks = self.tasks;
        let s = if tasks == 1 { "" } else { "s" };
        write!(f, "{keys}, {tasks} task{s}")
    }
}

/// An outcome in which the arms did so many operations in a second, repetition by repetition.
#[cfg(test)]
pub(crate) fn sample<K, const N: usize>(rates: [(K, &[f64]); N]) -> Outcome<K> {
    let slice = |&rate: &f64| Slice {
        rate,
        latency: Some(Duration::from_millis(2)),
        server_cpu: Some(Duration::from_micros(90)),
        client_cpu: None,
    };
    let measured = rates.map(|(kind, rates)| Measured {
        kind,
        slices: rates.iter().map(slice).collect(),
    });
    Outcome {
        suite: Suite {
            keys: Keys::Distinct,
            tasks: 16,
        },
        measured: measured.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::Kind;
    use crate::postgres;

    #[test]
    fn every_arm_runs_once_in_a_repetition_and_follows_different_ones() {
        assert_eq!(order(0, 4), [0, 1, 2, 3]);
        assert_eq!(order(1, 4), [0, 3, 2, 1]);
        assert_eq!(order(6, 4), [2, 3, 0, 1]);
    }

    #[test]
    fn a_ratio_is_formed_within_each_repetition_and_a_cycle_counts_as_two_writes() {
        let outcome = sample([
            (Kind::RawPut, &[100.0, 10.0, 50.0]),
            (Kind::Bare, &[40.0, 4.0, 25.0]),
            (Kind::Guards, &[36.0, 4.0, 20.0]),
        ]);
        let to_put = outcome.ratio(Kind::Bare, Kind::RawPut).unwrap();
        assert_eq!(
            (to_put.median, to_put.least, to_put.greatest),
            (0.8, 0.8, 1.0)
        );
        let to_bare = outcome.ratio(Kind::Guards, Kind::Bare).unwrap();
        assert_eq!(
            (to_bare.median, to_bare.least, to_bare.greatest),
            (0.9, 0.8, 1.0)
        );
        assert_eq!(outcome.ratio(Kind::Store, Kind::Bare), None);
    }

    #[test]
    fn what_the_server_itself_costs_for_one_key_is_asked_by_a_single_task() {
        let (keys, tasks) = (Keys::Hot, 16);
        let hot = Suite { keys, tasks };
        assert_eq!(hot.tasks_of(Kind::RawPut), 1);
        assert_eq!(hot.tasks_of(Kind::RawPair), 16);
        assert_eq!(hot.tasks_of(postgres::Kind::RawPair), 1);
        assert_eq!(hot.tasks_of(postgres::Kind::HandOver), 1);
        let keys = Keys::Distinct;
        assert_eq!(Suite { keys, tasks }.tasks_of(Kind::RawPut), 16);
    }

    #[test]
    fn a_repetition_in_which_nothing_was_done_has_no_ratio() {
        let outcome = sample([(Kind::RawPut, &[0.0]), (Kind::Bare, &[0.0])]);
        assert_eq!(outcome.ratio(Kind::Bare, Kind::RawPut), None);
    }
}
