use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use lock_spi::{Effect, Elapsed, ErrorKind, Expiry, LockStore, Observed, Runtime};

use crate::telemetry::Telemetry;

/// The store, and where to get time, tasks and chance; one for a client and all its parts.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) store: Arc<dyn LockStore>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) telemetry: Telemetry,
    /// Whether a grant has an end of its own, which may come before its session's.
    pub(crate) grants_end_alone: bool,
}

impl Backend {
    pub(crate) fn new(store: impl LockStore, runtime: Arc<dyn Runtime>) -> Self {
        let descriptor = store.descriptor();
        Self {
            telemetry: Telemetry::new(&descriptor),
            grants_end_alone: descriptor.capabilities.expiry != Expiry::ByItself,
            store: Arc::new(Observed::new(store, Arc::clone(&runtime))),
            runtime,
        }
    }

    /// Asks the store, waiting at most `limit` for the answer.
    ///
    /// The store sees to it that what it has begun runs to its end (ALL-1), so that a call needs no
    /// further task here: whether its caller is dropped, it hangs or it panics, nobody else is harmed.
    pub(crate) async fn call<T, F>(
        &self,
        limit: Duration,
        operation: impl FnOnce(Arc<dyn LockStore>) -> F + Send + 'static,
    ) -> lock_spi::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = lock_spi::Result<T>> + Send + 'static,
    {
        self.ask(limit, operation)
            .await
            .unwrap_or_else(|Unanswered(why)| {
                Err(lock_spi::Error::new(
                    ErrorKind::Unavailable,
                    Effect::Unknown,
                    why,
                ))
            })
    }

    /// [`call`](Self::call), for those to whom a call without any answer is not an error like
    /// others: it may be going on still.
    pub(crate) async fn ask<T, F>(
        &self,
        limit: Duration,
        operation: impl FnOnce(Arc<dyn LockStore>) -> F + Send + 'static,
    ) -> Result<lock_spi::Result<T>, Unanswered>
    where
        T: Send + 'static,
        F: Future<Output = lock_spi::Result<T>> + Send + 'static,
    {
        let store = Arc::clone(&self.store);
        // Nobody sees the state that a panic leaves: the call is dropped with it.
        let answer = AssertUnwindSafe(async move { operation(store).await }).catch_unwind();
        match self.runtime.timeout(limit, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_panic)) => Err(Unanswered("the call broke off")),
            Err(Elapsed) => Err(Unanswered("no answer within the time limit")),
        }
    }
}

/// The store did not answer, and why.
#[derive(Debug)]
pub(crate) struct Unanswered(pub(crate) &'static str);
