use std::time::Duration;

use lock_spi::names::{event, field, metric, tag};
use lock_spi::{Descriptor, GrantRef, Namespace, SessionId};
use metrics::Gauge;
use tracing::Level;

use crate::lost::LostReason;

/// Tells what holders believe; what stores answer is told by [`lock_spi::Observed`].
#[derive(Debug)]
pub(crate) struct Telemetry {
    store: &'static str,
    namespace: Namespace,
}

/// Counts one in a gauge for as long as it lives.
pub(crate) struct Counted(Gauge);

impl Telemetry {
    pub(crate) fn new(descriptor: &Descriptor) -> Self {
        Self {
            store: descriptor.name,
            namespace: descriptor.namespace.clone(),
        }
    }

    pub(crate) fn count_held(&self) -> Counted {
        self.count(metric::HELD)
    }

    pub(crate) fn count_session(&self) -> Counted {
        self.count(metric::SESSIONS)
    }

    pub(crate) fn count_waiter(&self) -> Counted {
        self.count(metric::WAITERS)
    }

    fn count(&self, name: &'static str) -> Counted {
        // The handle is kept, so that the end can be counted from any thread and any drop.
        let namespace = self.namespace.to_string();
        let gauge = metrics::gauge!(name, tag::STORE => self.store, tag::NAMESPACE => namespace);
        gauge.increment(1);
        Counted(gauge)
    }

    pub(crate) fn renewed(&self, slack: Duration) {
        let namespace = self.namespace.to_string();
        metrics::histogram!(
            metric::RENEW_SLACK,
            tag::STORE => self.store,
            tag::NAMESPACE => namespace
        )
        .record(slack);
    }

    pub(crate) fn lost(&self, grant: &GrantRef, session: SessionId, reason: &LostReason) {
        let namespace = self.namespace.to_string();
        metrics::counter!(
            metric::LOST,
            tag::STORE => self.store,
            tag::NAMESPACE => namespace,
            tag::REASON => reason.tag()
        )
        .increment(1);
        tracing::event!(
            name: event::LOCK_LOST,
            Level::WARN,
            {
                message = event::LOCK_LOST,
                { field::STORE } = self.store,
                { field::NAMESPACE } = self.namespace.as_str(),
                { field::KEY } = grant.key.as_str(),
                { field::TOKEN } = %grant.token,
                { field::SESSION } = %session,
                { field::REASON } = reason.tag()
            }
        );
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}
