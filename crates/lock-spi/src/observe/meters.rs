//! Counters and histograms of one store. Their keys, with all labels, are made once: a call looks
//! them up and allocates nothing.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Key, Label, Level, Metadata, SharedString};

use crate::names::{metric, outcome, tag};
use crate::text::Namespace;

static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// What an observed operation is counted and timed under.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Acquire,
    Release,
    Renew,
    Revoke,
    Wait,
}

/// How many operations there are.
const OPERATIONS: usize = 5;

/// The metrics of one store object.
///
/// What is kept is the keys and not the counters: a counter belongs to the recorder that is
/// installed when it is made, and that may be a later one.
pub(super) struct Meters {
    store: &'static str,
    namespace: SharedString,
    of_operations: [[OnceLock<Keys>; outcome::ALL.len()]; OPERATIONS],
    floor_violation: OnceLock<Key>,
}

struct Keys {
    counter: Key,
    duration: Key,
}

impl Operation {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Acquire => (metric::ACQUIRE, metric::ACQUIRE_DURATION),
            Self::Release => (metric::RELEASE, metric::RELEASE_DURATION),
            Self::Renew => (metric::RENEW, metric::RENEW_DURATION),
            Self::Revoke => (metric::REVOKE, metric::REVOKE_DURATION),
            Self::Wait => (metric::WAIT, metric::WAIT_DURATION),
        }
    }
}

impl Meters {
    pub(super) fn new(store: &'static str, namespace: &Namespace) -> Self {
        Self {
            store,
            namespace: SharedString::from_shared(namespace.as_str().into()),
            of_operations: Default::default(),
            floor_violation: OnceLock::new(),
        }
    }

    /// Counts and times a call.
    pub(super) fn record(&self, operation: Operation, outcome: &'static str, took: Duration) {
        let place = outcome::ALL.iter().position(|known| *known == outcome);
        debug_assert!(place.is_some(), "{outcome} is not listed");
        let slots = &self.of_operations[operation as usize];
        let Some(slot) = place.and_then(|place| slots.get(place)) else {
            return;
        };
        let keys = slot.get_or_init(|| self.keys(operation, outcome));
        metrics::with_recorder(|recorder| {
            recorder
                .register_counter(&keys.counter, &METADATA)
                .increment(1);
            recorder
                .register_histogram(&keys.duration, &METADATA)
                .record(took.as_secs_f64());
        });
    }

    /// Counts a violated floor.
    pub(super) fn floor_violated(&self) {
        let key = || Key::from_parts(metric::FLOOR_VIOLATION, self.labels());
        let key = self.floor_violation.get_or_init(key);
        metrics::with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(1));
    }

    fn keys(&self, operation: Operation, outcome: &'static str) -> Keys {
        let mut labels = self.labels();
        labels.push(Label::from_static_parts(tag::OUTCOME, outcome));
        let (counter, duration) = operation.names();
        Keys {
            counter: Key::from_parts(counter, labels.clone()),
            duration: Key::from_parts(duration, labels),
        }
    }

    fn labels(&self) -> Vec<Label> {
        vec![
            Label::from_static_parts(tag::STORE, self.store),
            Label::new(tag::NAMESPACE, self.namespace.clone()),
        ]
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    /// A program may install its recorder after it has made its client.
    #[test]
    fn a_recorder_that_is_installed_later_sees_what_comes_after() {
        let meters = Meters::new("double", &Namespace::default());
        let took = Duration::from_millis(250);
        meters.record(Operation::Acquire, outcome::GRANTED, took);
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::with_local_recorder(&recorder, || {
            meters.record(Operation::Acquire, outcome::GRANTED, took);
        });
        let recorded: Vec<_> = snapshotter.snapshot().into_vec();
        assert_eq!(recorded.len(), 2);
        for (key, _, _, value) in recorded {
            match (key.key().name(), value) {
                (metric::ACQUIRE, DebugValue::Counter(count)) => assert_eq!(count, 1),
                (metric::ACQUIRE_DURATION, DebugValue::Histogram(seconds)) => {
                    assert_eq!(seconds, [0.25]);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
