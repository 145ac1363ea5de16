//! The task that listens for a store object, for as long as that lives.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Result, Runtime};
use tokio::sync::watch;

use crate::client::{Heard, Listener, PostgresClient};
use crate::wakes::Wakes;

/// The first pause after a connection that listens has failed, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// What it takes to listen.
pub(crate) struct Ear {
    pub(crate) client: PostgresClient,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) channel: String,
    pub(crate) limit: Duration,
    pub(crate) wakes: Arc<Wakes>,
}

/// Listens until the store object is gone, by one connection after the other.
pub(crate) async fn until_closed(ear: Ear, mut life: watch::Receiver<()>) {
    let (shortest, longest) = PAUSES;
    let mut pause = shortest;
    loop {
        let listened = async {
            let mut listener = Listener::start(&ear.client, &ear.channel, ear.limit).await?;
            pause = shortest;
            // What was notified before it stood was heard by nobody.
            ear.wakes.gap();
            ear.listen(&mut listener).await
        };
        tokio::select! {
            biased;
            _closed = life.changed() => return,
            Err(error) = listened => {
                tracing::debug!(%error, "nobody listens for a moment");
            }
        }
        // Who waits looks by itself until somebody listens again.
        ear.wakes.gap();
        let late = ear.runtime.sleep(pause + ear.runtime.jitter(pause));
        tokio::select! {
            biased;
            _closed = life.changed() => return,
            () = late => {}
        }
        pause = (pause * 2).min(longest);
    }
}

impl Ear {
    async fn listen(&self, listener: &mut Listener) -> Result<std::convert::Infallible> {
        loop {
            if let Heard::Turn(attempt) = listener.hear().await? {
                self.wakes.turn(attempt);
            }
        }
    }
}
