//! What a run is like: drawn from its tape before anything else.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::Runtime;
use sim_runtime::Weather;

use crate::faults::{Dose, Fault, Faults};

/// A run's shape.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    /// Callers in each client.
    pub(crate) callers: usize,
    pub(crate) keys: Vec<Arc<str>>,
    pub(crate) ttl: Duration,
    /// The longest that a caller does nothing.
    pub(crate) idle: Duration,
    /// The longest that it holds a lock without looking.
    pub(crate) hold: Duration,
    /// Of each kind of operation, how likely it is.
    pub(crate) mix: Mix,
    pub(crate) weather: Weather,
    pub(crate) faults: Vec<(Fault, Dose)>,
}

/// Likelihoods of operations, beside each other.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    pub(crate) weights: Vec<(Operation, u64)>,
}

/// How a caller comes to a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    /// It waits for one, for a while.
    Acquire,
    /// It tries.
    Try,
    /// It waits for one, and changes its mind.
    CallOff,
    /// It takes several at once.
    AcquireAll,
    /// It stands for an election.
    Campaign,
    /// It takes one and gives it to somebody else.
    HandOver,
}

impl Operation {
    const ALL: [Self; 6] = [
        Self::Acquire,
        Self::Try,
        Self::CallOff,
        Self::AcquireAll,
        Self::Campaign,
        Self::HandOver,
    ];
}

/// Which parts of a plan are given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) clients: Option<usize>,
    pub(crate) ttl: Option<Duration>,
}

const TTLS: [u64; 6] = [5, 2, 3, 8, 10, 15];
const KEYS: [&str; 4] = ["orders/7", "report", "a", "b c"];

impl Plan {
    pub(crate) fn draw(runtime: &dyn Runtime, given: &Given, faults: &Faults) -> Self {
        let below = |limit| usize::try_from(runtime.random_below(limit)).unwrap_or(0);
        let clients = given.clients.unwrap_or_else(|| 1 + below(8));
        let callers = 1 + below(2);
        let keys = 1 + below(4);
        let ttl = TTLS.get(below(6)).copied().unwrap_or(5);
        let ttl = given.ttl.unwrap_or(Duration::from_secs(ttl));
        let mix = Mix::draw(runtime);
        let idle = Duration::from_millis([1500, 300, 4000][below(3) % 3]);
        let hold = Duration::from_millis([300, 50, 2000][below(3) % 3]);
        let faults = faults.draw(runtime, ttl);
        let mut weather = Weather {
            delay: Duration::from_micros(200)
                ..Duration::from_micros(200 + runtime.random_below(30_000)),
            ..Weather::calm()
        };
        for (fault, dose) in &faults {
            fault.flavour(dose, &mut weather);
        }
        Self {
            clients,
            callers,
            keys: KEYS.iter().take(keys).map(|key| Arc::from(*key)).collect(),
            ttl,
            idle,
            hold,
            mix,
            weather,
            faults,
        }
    }
}

impl Mix {
    /// Every run prefers other operations; the plainest knows only one.
    fn draw(runtime: &dyn Runtime) -> Self {
        let weights = Operation::ALL.iter().map(|operation| {
            let weight = runtime.random_below(5);
            let least = u64::from(*operation == Operation::Acquire);
            (*operation, weight.max(least))
        });
        Self {
            weights: weights.collect(),
        }
    }

    /// Draws an operation.
    pub(crate) fn choose(&self, runtime: &dyn Runtime) -> Operation {
        let all = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut drawn = runtime.random_below(all);
        for (operation, weight) in &self.weights {
            match drawn.checked_sub(*weight) {
                None => return *operation,
                Some(rest) => drawn = rest,
            }
        }
        Operation::Acquire
    }
}
