//! Keeps a store in step with a runtime's clock.

use std::future::pending;
use std::sync::{Arc, Weak};

use lock_spi::{Instant, Runtime};
use tokio::sync::Notify;

use crate::shared::Shared;
use crate::time::{full_ticks, since_first_tick};

/// A runtime's clock in ticks, and the driver that lets happen what is due by itself.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    runtime: Arc<dyn Runtime>,
    first_tick: Instant,
    nudged: Arc<Notify>,
}

impl Clock {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        let first_tick = runtime.now();
        Self {
            runtime,
            first_tick,
            nudged: Arc::default(),
        }
    }

    /// The same clock for another store, whose driver is another.
    pub(crate) fn for_another(&self) -> Self {
        Self {
            nudged: Arc::default(),
            ..self.clone()
        }
    }

    /// The present tick.
    pub(crate) fn tick(&self) -> u64 {
        full_ticks(self.runtime.now().saturating_since(self.first_tick))
    }

    /// Whether some of the next tick has passed as well.
    pub(crate) fn is_between_ticks(&self) -> bool {
        let since = self.runtime.now().saturating_since(self.first_tick);
        since > since_first_tick(full_ticks(since))
    }

    /// Makes the driver look again.
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }

    /// Drives `store` until it is dropped.
    pub(crate) fn drive(&self, store: Weak<Shared>) {
        let clock = self.clone();
        self.runtime.spawn(Box::pin(async move {
            while let Some(due) = store.upgrade().map(|store| store.drive()) {
                clock.wait_until(due).await;
            }
        }));
    }

    async fn wait_until(&self, due: Option<u64>) {
        let due = async {
            match due {
                Some(tick) => {
                    let deadline = self.first_tick + since_first_tick(tick);
                    self.runtime.sleep_until(deadline).await;
                }
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.nudged.notified() => {}
            () = due => {}
        }
    }
}
