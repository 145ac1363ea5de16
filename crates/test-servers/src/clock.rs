//! Real time and threads: the one place that asks for them.

#![allow(
    clippy::disallowed_methods,
    reason = "servers are processes: they run in real time, and nothing of it is replayed"
)]

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often something is looked at that tells nobody when it changes.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

/// The present moment.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until then, on a tokio runtime.
pub(crate) async fn sleep_until(moment: Instant) {
    tokio::time::sleep_until(moment.into()).await;
}

/// Runs `work` on a thread of its own.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::spawn(work)
}

/// Looks again and again, for `limit` at most, until there is something to see.
pub(crate) fn poll<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = now() + limit;
    loop {
        let seen = look();
        if seen.is_some() || now() >= deadline {
            return seen;
        }
        thread::sleep(LOOK_PERIOD);
    }
}
