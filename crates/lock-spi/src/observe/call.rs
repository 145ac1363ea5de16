use crate::error::Result;
use crate::names::outcome;
use crate::observe::meters::{Meters, Operation};
use crate::runtime::{Instant, Runtime};

/// A call in flight. Dropped without an end, it is counted as `dropped`.
pub(super) struct Call<'a> {
    operation: Operation,
    meters: &'a Meters,
    runtime: &'a dyn Runtime,
    begun: Instant,
    outcome: &'static str,
}

impl<'a> Call<'a> {
    pub(super) fn begin(
        operation: Operation,
        meters: &'a Meters,
        runtime: &'a dyn Runtime,
    ) -> Self {
        Self {
            operation,
            meters,
            runtime,
            begun: runtime.now(),
            outcome: outcome::DROPPED,
        }
    }

    pub(super) fn end<T>(mut self, answer: &Result<T>, name: impl FnOnce(&T) -> &'static str) {
        self.outcome = match answer {
            Ok(answer) => name(answer),
            Err(error) => outcome::of_error(error.kind()),
        };
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let took = self.runtime.now().saturating_since(self.begun);
        self.meters.record(self.operation, self.outcome, took);
    }
}
