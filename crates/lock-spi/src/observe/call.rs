use metrics::{Label, SharedString};

use crate::error::Result;
use crate::names::{metric, outcome, tag};
use crate::runtime::{Instant, Runtime};
use crate::text::Namespace;

/// What an observed operation is counted and timed under.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    counter: &'static str,
    duration: &'static str,
}

/// The tags that all metrics of a store share.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    store: &'static str,
    namespace: SharedString,
}

/// A call in flight. Dropped without an end, it is counted as `dropped`.
pub(super) struct Call<'a> {
    operation: Operation,
    labels: &'a Labels,
    runtime: &'a dyn Runtime,
    begun: Instant,
    outcome: &'static str,
}

impl Operation {
    pub(super) const ACQUIRE: Self = Self {
        counter: metric::ACQUIRE,
        duration: metric::ACQUIRE_DURATION,
    };
    pub(super) const RENEW: Self = Self {
        counter: metric::RENEW,
        duration: metric::RENEW_DURATION,
    };
    pub(super) const RELEASE: Self = Self {
        counter: metric::RELEASE,
        duration: metric::RELEASE_DURATION,
    };
    pub(super) const REVOKE: Self = Self {
        counter: metric::REVOKE,
        duration: metric::REVOKE_DURATION,
    };
    pub(super) const WAIT: Self = Self {
        counter: metric::WAIT,
        duration: metric::WAIT_DURATION,
    };
}

impl Labels {
    pub(super) fn new(store: &'static str, namespace: &Namespace) -> Self {
        Self {
            store,
            namespace: SharedString::from_shared(namespace.as_str().into()),
        }
    }

    pub(super) fn plain(&self) -> Vec<Label> {
        vec![
            Label::from_static_parts(tag::STORE, self.store),
            Label::new(tag::NAMESPACE, self.namespace.clone()),
        ]
    }

    fn with_outcome(&self, outcome: &'static str) -> Vec<Label> {
        let mut labels = self.plain();
        labels.push(Label::from_static_parts(tag::OUTCOME, outcome));
        labels
    }
}

impl<'a> Call<'a> {
    pub(super) fn begin(
        operation: Operation,
        labels: &'a Labels,
        runtime: &'a dyn Runtime,
    ) -> Self {
        Self {
            operation,
            labels,
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
        let labels = self.labels.with_outcome(self.outcome);
        let took = self.runtime.now().saturating_since(self.begun);
        metrics::counter!(self.operation.counter, labels.clone()).increment(1);
        metrics::histogram!(self.operation.duration, labels).record(took);
    }
}
