//! What the tests of the client share: a scripted store, clocks that jump, and small helpers.

mod clock;
mod double;
mod embedded;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fencelock::spi::{LockKey, Owner, Runtime, Ttl};
use fencelock::{Attempt, Client, ClientBuilder, Guard};
use sim_runtime::World;

pub(crate) use clock::JumpingClock;
pub(crate) use double::{Act, Double, Op};
pub(crate) use embedded::Embedded;

/// A world with one node, a client on it, and the store that the client uses.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) store: Double,
    pub(crate) client: Client,
}

impl Scene {
    /// A client with the defaults: ttl 15 s, renewed every 5 s, believed for 13.5 s.
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        Self::of_seed(7, configure)
    }

    pub(crate) fn of_seed(
        seed: u64,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Self {
        let world = World::new(seed);
        let runtime = world.runtime("a");
        let store = Double::new(Arc::clone(&runtime));
        let client = client_of(&store, &runtime, "a", configure);
        Self {
            world,
            runtime,
            store,
            client,
        }
    }

    /// Another client of the same store.
    pub(crate) fn another(&self, name: &str) -> Client {
        let runtime = self.world.runtime(name);
        client_of(&self.store, &runtime, name, |builder| builder)
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.block_on(future)
    }

    pub(crate) fn pass(&self, duration: Duration) {
        self.world.block_on(self.runtime.sleep(duration));
    }

    pub(crate) fn guard(&self, key: &str) -> Guard {
        self.run(acquired(&self.client, key))
    }
}

pub(crate) fn client_of(
    store: &Double,
    runtime: &Arc<dyn Runtime>,
    name: &str,
    configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Client {
    let builder = Client::builder(store.clone()).runtime(Arc::clone(runtime));
    let builder = builder.owner(Owner::new(name).unwrap());
    configure(builder).build().unwrap()
}

/// Acquires a key that must be free.
pub(crate) async fn acquired(client: &Client, key: &str) -> Guard {
    match client.try_acquire(key).await.unwrap() {
        Attempt::Acquired(guard) => guard,
        Attempt::Held(holder) => panic!("{key} is held by {holder:?}"),
    }
}

/// Whether a key is free for `client`; if so it is given back at once.
pub(crate) async fn is_free(client: &Client, key: &str) -> bool {
    match client.try_acquire(key).await.unwrap() {
        Attempt::Acquired(guard) => {
            guard.release().await.unwrap();
            true
        }
        Attempt::Held(_) => false,
    }
}

/// Whether a future is done at its first poll.
pub(crate) fn is_ready<F: Future>(future: F) -> bool {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    matches!(future.as_mut().poll(&mut context), Poll::Ready(_))
}

/// Polls `future` to its end, or `polls` times and then drops it; whether it came to its end.
pub(crate) async fn polled_at_most<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // Dropped at once, not at the next wake-up, which may never come.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

pub(crate) fn key(text: &str) -> LockKey {
    LockKey::new(text).unwrap()
}

pub(crate) fn ttl(seconds: u64) -> Ttl {
    Ttl::from_secs(seconds).unwrap()
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
