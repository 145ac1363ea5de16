//! How long a lock is kept before it is given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_spi::Runtime;

use crate::arms::Keys;

/// Long enough that whoever waits is ready when it ends.
const LENGTH: Duration = Duration::from_millis(3);

/// Keeps a lock as long as its keys ask for, and counts how long that was.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    length: Duration,
    runtime: Arc<dyn Runtime>,
    nanoseconds: Arc<AtomicU64>,
}

impl Hold {
    pub(crate) fn new(keys: Keys, runtime: &Arc<dyn Runtime>) -> Self {
        Self {
            length: match keys {
                Keys::Distinct | Keys::Hot => Duration::ZERO,
                Keys::Held => LENGTH,
            },
            runtime: Arc::clone(runtime),
            nanoseconds: Arc::default(),
        }
    }

    /// Called by whoever holds the lock.
    pub(crate) async fn keep(&self) {
        if self.length.is_zero() {
            return;
        }
        let begun = self.runtime.now();
        self.runtime.sleep(self.length).await;
        let kept = self.runtime.now().saturating_since(begun);
        let nanoseconds = u64::try_from(kept.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How long locks were kept in all so far.
    pub(crate) fn kept(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}
