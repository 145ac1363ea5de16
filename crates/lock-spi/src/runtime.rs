//! Time, tasks and chance, passed in.
//!
//! Clients and stores take nothing of these from anywhere else, so that a simulator can run them
//! unmodified and replay any run from its seed.

use std::fmt;
use std::future::Future;
use std::ops::{Add, Sub};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

/// A future on the heap that a [`Runtime`] can run.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Where clients and stores get time, tasks and chance.
///
/// `TokioRuntime` is the one for programs; simulators bring their own. What is built from these
/// stands as methods of `dyn Runtime`: [`sleep`](#method.sleep), [`timeout`](#method.timeout)
/// and [`run_to_end`](#method.run_to_end).
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "tokio")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use lock_spi::{Runtime, TokioRuntime};
///
/// let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
/// let answer = runtime.timeout(Duration::from_secs(1), async { 42 }).await;
/// assert_eq!(answer, Ok(42));
/// # }
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
/// ```
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// The present on a clock that never goes back and counts suspend.
    fn now(&self) -> Instant;

    /// Time since the Unix epoch as this machine has it: for people to read. No lock is granted,
    /// kept or ended by it; an operator's recovery takes a new term from its hours.
    fn wall_clock(&self) -> Duration;

    /// Resolves when [`Runtime::now`] has reached `deadline`. Cancel safe.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()>;

    /// Runs `task` to its end, in the background. A panic in it is contained.
    fn spawn(&self, task: BoxFuture<()>);

    /// 64 random bits.
    fn random(&self) -> u64;

    /// A random number below `limit`; 0 for a limit of 0.
    ///
    /// For choices, where [`random`](Self::random) is for names that nothing else may have. A
    /// simulator records them apart from each other, so that it can make a choice once more, or
    /// another one; 0 should be the plainest.
    fn random_below(&self, limit: u64) -> u64 {
        self.random().checked_rem(limit).unwrap_or(0)
    }
}

impl dyn Runtime {
    /// Resolves after `duration`. Cancel safe.
    pub fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        self.sleep_until(self.now() + duration)
    }

    /// Runs `future` for at most `limit`; past it, the future is dropped where it stands.
    ///
    /// # Errors
    ///
    /// [`Elapsed`] when the limit came first.
    ///
    /// # Cancel safety
    ///
    /// That of `future`.
    pub async fn timeout<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T> + Send,
    ) -> Result<T, Elapsed> {
        let late = self.sleep(limit);
        tokio::select! {
            biased;
            output = pin!(future) => Ok(output),
            () = late => Err(Elapsed),
        }
    }

    /// Runs `future` to its end on a task of its own, whether or not the answer is awaited.
    pub fn run_to_end<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Joined<T> {
        let (sender, receiver) = oneshot::channel();
        self.spawn(Box::pin(async move {
            // Nobody waiting for the answer any more is what this is for.
            drop(sender.send(future.await));
        }));
        Joined(receiver)
    }

    /// A random duration in `0..limit`; zero for a zero limit.
    pub fn jitter(&self, limit: Duration) -> Duration {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random_below(nanos))
    }
}

/// The answer of a task started by [`run_to_end`](trait.Runtime.html#method.run_to_end). Dropping
/// it does not stop the task.
#[derive(Debug)]
#[must_use = "await it for the task's answer"]
pub struct Joined<T>(oneshot::Receiver<T>);

impl<T> Future for Joined<T> {
    type Output = Result<T, TaskLost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(|_| TaskLost)
    }
}

/// The task panicked, or its runtime ended, before it answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the task ended without an answer")]
pub struct TaskLost;

/// The limit came before the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no answer within the time limit")]
pub struct Elapsed;

/// A moment on a [`Runtime`]'s clock: a duration since an origin that the runtime chose.
///
/// Arithmetic saturates: a deadline beyond the end of time is the end of time.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(Duration);

impl Instant {
    /// For runtimes: the moment this long after the origin.
    #[must_use]
    pub const fn from_origin(since: Duration) -> Self {
        Self(since)
    }

    /// For runtimes: how long after the origin.
    #[must_use]
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// How long after `earlier`; zero when it is not after.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}
