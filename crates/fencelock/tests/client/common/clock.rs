use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencelock::spi::{BoxFuture, Instant, Runtime};

/// A node whose clock can jump ahead while its timers stand still: a machine that was suspended.
#[derive(Clone, Debug)]
pub(crate) struct JumpingClock {
    inner: Arc<dyn Runtime>,
    ahead: Arc<AtomicU64>,
}

impl JumpingClock {
    pub(crate) fn new(inner: Arc<dyn Runtime>) -> Self {
        Self {
            inner,
            ahead: Arc::default(),
        }
    }

    pub(crate) fn jump(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap();
        self.ahead.fetch_add(nanos, Ordering::SeqCst);
    }

    fn ahead(&self) -> Duration {
        Duration::from_nanos(self.ahead.load(Ordering::SeqCst))
    }
}

impl Runtime for JumpingClock {
    fn now(&self) -> Instant {
        self.inner.now() + self.ahead()
    }

    fn wall_clock(&self) -> Duration {
        self.inner.wall_clock() + self.ahead()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        // Timers stand still: what is left is slept as it was when the sleep began.
        self.inner.sleep_until(deadline - self.ahead())
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.inner.spawn(task);
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }
}
