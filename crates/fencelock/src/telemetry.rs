use std::time::Duration;

use lock_spi::names::{event, field, metric, tag};
use lock_spi::{Descriptor, GrantRef, Namespace, Owner, SessionId};
use metrics::{Gauge, Key, Label, Metadata, SharedString};
use tracing::Level;

use crate::lost::LostReason;

static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), metrics::Level::INFO, Some(module_path!()));

/// Tells what holders believe; what stores answer is told by [`lock_spi::Observed`].
///
/// The keys of the metrics are made once: a renewal or a guard allocates none. They are looked up
/// anew each time, as a recorder may be installed late.
#[derive(Debug)]
pub(crate) struct Telemetry {
    store: &'static str,
    namespace: Namespace,
    labels: [Label; 2],
    held: Key,
    sessions: Key,
    waiters: Key,
    slack: Key,
}

/// Counts one in a gauge for as long as it lives.
pub(crate) struct Counted(Gauge);

impl Telemetry {
    pub(crate) fn new(descriptor: &Descriptor) -> Self {
        let namespace = SharedString::from_shared(descriptor.namespace.as_str().into());
        let labels = [
            Label::from_static_parts(tag::STORE, descriptor.name),
            Label::new(tag::NAMESPACE, namespace),
        ];
        let key = |name| Key::from_parts(name, labels.to_vec());
        Self {
            store: descriptor.name,
            namespace: descriptor.namespace.clone(),
            held: key(metric::HELD),
            sessions: key(metric::SESSIONS),
            waiters: key(metric::WAITERS),
            slack: key(metric::RENEW_SLACK),
            labels,
        }
    }

    pub(crate) fn count_held(&self) -> Counted {
        Counted::one(&self.held)
    }

    pub(crate) fn count_session(&self) -> Counted {
        Counted::one(&self.sessions)
    }

    pub(crate) fn count_waiter(&self) -> Counted {
        Counted::one(&self.waiters)
    }

    pub(crate) fn renewed(&self, slack: Duration) {
        metrics::with_recorder(|recorder| {
            recorder
                .register_histogram(&self.slack, &METADATA)
                .record(slack.as_secs_f64());
        });
    }

    pub(crate) fn lost(
        &self,
        grant: &GrantRef,
        session: SessionId,
        owner: &Owner,
        reason: &LostReason,
    ) {
        let reason = reason.tag();
        let mut labels = self.labels.to_vec();
        labels.push(Label::from_static_parts(tag::REASON, reason));
        let key = Key::from_parts(metric::LOST, labels);
        metrics::with_recorder(|recorder| recorder.register_counter(&key, &METADATA).increment(1));
        tracing::event!(
            name: event::LOCK_LOST,
            target: event::TARGET,
            Level::WARN,
            {
                message = event::LOCK_LOST,
                { field::STORE } = self.store,
                { field::NAMESPACE } = self.namespace.as_str(),
                { field::KEY } = grant.key.as_str(),
                { field::TOKEN } = %grant.token,
                { field::OWNER } = owner.as_str(),
                { field::SESSION } = %session,
                { field::REASON } = reason
            }
        );
    }
}

impl Counted {
    /// The handle is kept, so that the end can be counted from any thread and any drop.
    fn one(key: &Key) -> Self {
        let gauge = metrics::with_recorder(|recorder| recorder.register_gauge(key, &METADATA));
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
