//! All watches of a client, on one stream of etcd's.

mod hub;
mod pulse;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use etcd_kv::{Applied, KvError, WatchRequest, WatchResponse, WatchStream};
use futures_util::stream;
use lock_spi::Runtime;
use tokio::sync::{mpsc, oneshot};

use self::hub::{Command, Hub};
use self::table::{Refused, Watcher, unavailable};
use super::endpoints::Endpoints;

/// Where watches are asked for. The hub behind it lives for as long as this or any of them.
#[derive(Debug)]
pub(super) struct Watches {
    commands: mpsc::UnboundedSender<Command>,
    runtime: Arc<dyn Runtime>,
    limit: Duration,
    next: AtomicU64,
}

impl Watches {
    /// Starts the hub; a stream is opened when somebody watches. One that is silent for as long as
    /// `silence` is asked for a sign of life, and given up when it gives none for as long again.
    pub(super) fn new(
        endpoints: Arc<Endpoints>,
        runtime: Arc<dyn Runtime>,
        (limit, silence): (Duration, Duration),
    ) -> Self {
        let (commands, receiver) = mpsc::unbounded_channel();
        let hub = Hub::new(endpoints, Arc::clone(&runtime), (limit, silence), receiver);
        runtime.spawn(Box::pin(hub.run()));
        Self {
            commands,
            runtime,
            limit,
            next: AtomicU64::new(0),
        }
    }

    /// Answers once the watch stands.
    pub(super) async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        let begun = self.runtime.timeout(self.limit, self.begin(request)).await;
        let late = |_elapsed| Err(unavailable("no watch stood within the time limit"));
        let begun = begun.unwrap_or_else(late);
        begun.map_err(|error| error.with_applied(Applied::No))
    }

    async fn begin(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        match self.ask(request.clone()).await {
            // It may have broken unnoticed, and it goes by the rights that it was opened with.
            Err(Refused::OnAnOldStream(_)) => self.ask(request).await.map_err(Refused::into_error),
            Err(Refused::ForGood(error)) => Err(error),
            Ok(watch) => Ok(watch),
        }
    }

    async fn ask(&self, request: WatchRequest) -> Result<WatchStream, Refused> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (begun, begins) = oneshot::channel();
        let (events, received) = mpsc::unbounded_channel();
        let interest = Interest {
            begins,
            received,
            _forget: Forget {
                number,
                commands: self.commands.clone(),
            },
        };
        let watcher = Watcher {
            number,
            request,
            begun,
            events,
        };
        let sent = self.commands.send(Command::Watch(watcher));
        sent.map_err(|_gone| Refused::ForGood(over()))?;
        interest.stands().await
    }
}

fn over() -> KvError {
    unavailable("the client's watches are over")
}

/// Somebody's interest in a watch. Its parts are dropped in this order: the hub must not take a
/// watch for wanted that it was told to forget.
struct Interest {
    begins: oneshot::Receiver<Result<(), Refused>>,
    received: mpsc::UnboundedReceiver<Result<WatchResponse, KvError>>,
    _forget: Forget,
}

impl Interest {
    async fn stands(mut self) -> Result<WatchStream, Refused> {
        let begun = (&mut self.begins).await;
        begun.unwrap_or_else(|_gone| Err(Refused::ForGood(over())))?;
        Ok(WatchStream::new(stream::poll_fn(move |context| {
            self.poll(context)
        })))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<WatchResponse, KvError>>> {
        self.received.poll_recv(context)
    }
}

/// Has the hub remove a watch.
struct Forget {
    number: u64,
    commands: mpsc::UnboundedSender<Command>,
}

impl Drop for Forget {
    fn drop(&mut self) {
        // With the hub all watches are over.
        drop(self.commands.send(Command::Forget(self.number)));
    }
}
