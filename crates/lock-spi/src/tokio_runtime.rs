// The one place where time, tasks and chance of the outside world enter.
#![allow(clippy::disallowed_methods)]

use std::time::Duration;

use crate::runtime::{BoxFuture, Instant, Runtime};

/// The [`Runtime`] of programs that run on tokio.
///
/// On Linux and Android its clock is `CLOCK_BOOTTIME`, which goes on while the machine is
/// suspended; on Apple systems `CLOCK_MONOTONIC` does; elsewhere it is [`std::time::Instant`], and
/// whether suspend counts is the system's choice.
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    handle: tokio::runtime::Handle,
}

impl TokioRuntime {
    /// Of the tokio runtime that this code runs in.
    ///
    /// # Panics
    ///
    /// When called outside a tokio runtime.
    #[must_use]
    pub fn current() -> Self {
        Self {
            handle: tokio::runtime::Handle::current(),
        }
    }

    /// Of the tokio runtime that this code runs in, if it runs in one.
    #[must_use]
    pub fn try_current() -> Option<Self> {
        let handle = tokio::runtime::Handle::try_current().ok()?;
        Some(Self { handle })
    }
}

/// tokio's timers stand still during suspend: no sleep is longer than this, and then the clock
/// that counts suspend is asked.
const LONGEST_NAP: Duration = Duration::from_secs(1);

impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        Instant::from_origin(clock::since_origin())
    }

    fn wall_clock(&self) -> Duration {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        // The timer is made inside the runtime, so that a future polled elsewhere works too.
        Box::pin(async move {
            loop {
                let left = deadline.saturating_since(Instant::from_origin(clock::since_origin()));
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LONGEST_NAP)).await;
            }
        })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        // tokio contains a panic in the task; who needs the answer uses `run_to_end`.
        drop(self.handle.spawn(task));
    }

    fn random(&self) -> u64 {
        // Invariant: the operating system's generator does not fail once the system is up.
        getrandom::u64().expect("the operating system has no random numbers")
    }
}

#[cfg(unix)]
mod clock {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    #[cfg(any(target_os = "linux", target_os = "android"))]
    const COUNTS_SUSPEND: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const COUNTS_SUSPEND: ClockId = ClockId::Monotonic;

    pub(super) fn since_origin() -> Duration {
        let time = clock_gettime(COUNTS_SUSPEND);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }
}

#[cfg(not(unix))]
mod clock {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    pub(super) fn since_origin() -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        ORIGIN.get_or_init(Instant::now).elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::runtime::{Elapsed, TaskLost};

    #[tokio::test]
    async fn sleeps_end_at_their_deadline_and_not_before() {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
        let deadline = runtime.now() + Duration::from_millis(20);
        runtime.sleep_until(deadline).await;
        assert!(runtime.now() >= deadline);
        runtime.sleep_until(deadline).await;
    }

    #[tokio::test]
    async fn a_limit_is_kept_and_a_panic_contained() {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
        let never = std::future::pending::<()>();
        assert_eq!(
            runtime.timeout(Duration::from_millis(5), never).await,
            Err(Elapsed)
        );
        let lost = runtime
            .run_to_end(async {
                if true {
                    panic!("planted")
                }
            })
            .await;
        assert_eq!(lost, Err(TaskLost));
        assert_eq!(runtime.run_to_end(async { 7 }).await, Ok(7));
    }

    #[tokio::test]
    async fn what_nobody_awaits_runs_to_its_end() {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        drop(runtime.run_to_end(async move { sender.send(1).is_ok() }));
        assert_eq!(receiver.await, Ok(1));
    }

    #[test]
    fn the_clock_is_the_one_that_counts_suspend() {
        // Suspend cannot be had in a test; that the clock is the boot clock can be seen.
        #[cfg(target_os = "linux")]
        {
            let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            let ours = clock::since_origin();
            let boot = Duration::from_secs(boot.tv_sec.unsigned_abs());
            assert!(ours.abs_diff(boot) < Duration::from_secs(60));
        }
    }
}
