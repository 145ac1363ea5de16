//! Futures dropped at every poll: nothing is left in the store.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use fencelock::spi::Runtime;
use fencelock::{Client, Error};

use crate::common::{Embedded, Scene, acquired, millis, polled_at_most, seconds};

/// Where it happens.
trait Venue {
    fn new(seed: u64) -> Self;
    fn runtime(&self) -> &Arc<dyn Runtime>;
    fn client(&self, name: &str) -> Client;
    fn run<F: Future>(&self, future: F) -> F::Output;
    fn pass(&self, duration: Duration);
    /// What is stored of sessions, locks and places.
    fn residue(&self) -> Vec<String>;
}

impl Venue for Scene {
    fn new(seed: u64) -> Self {
        let scene = Self::of_seed(seed, |builder| builder);
        // Replies take time, so that there are more places to stop at.
        scene.store.slow_down(millis(3));
        scene
    }

    fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    fn client(&self, name: &str) -> Client {
        self.another(name)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.block_on(future)
    }

    fn pass(&self, duration: Duration) {
        Self::pass(self, duration);
    }

    fn residue(&self) -> Vec<String> {
        match self.store.residue() {
            (0, 0) => Vec::new(),
            (sessions, locks) => vec![format!("{sessions} sessions, {locks} locks")],
        }
    }
}

impl Venue for Embedded {
    fn new(seed: u64) -> Self {
        Self::of_seed(seed)
    }

    fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    fn client(&self, name: &str) -> Client {
        Self::client(self, name)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.block_on(future)
    }

    fn pass(&self, duration: Duration) {
        Self::pass(self, duration);
    }

    fn residue(&self) -> Vec<String> {
        Self::residue(self)
    }
}

/// Runs what `begin` makes for 0, 1, 2 … polls and then drops it, each time in a world of its own,
/// until it comes to its end. By the time of the session's next renewal nothing may be left.
fn dropped_at_every_poll<V: Venue, F>(begin: impl Fn(Client) -> F)
where
    F: Future<Output = Result<(), Error>>,
{
    for_each_seed_and_poll(|seed, polls| {
        let venue = V::new(seed);
        let client = venue.client("mine");
        let done = venue.run(polled_at_most(begin(client.clone()), polls));
        venue.pass(seconds(6));
        assert_eq!(venue.residue(), [""; 0], "seed {seed}, after {polls} polls");
        drop(venue.run(acquired(&venue.client("next"), "k")));
        let report = venue.run(client.shutdown());
        assert_eq!(
            report.left_to_expire,
            [],
            "seed {seed}, after {polls} polls"
        );
        done.map(|outcome| {
            outcome.unwrap();
            assert!(polls > 1, "it was never cut off");
        })
    });
}

/// Calls `cut_off` with 0, 1, 2 … polls until it answers that they were enough, in several orders
/// of events.
fn for_each_seed_and_poll(cut_off: impl Fn(u64, usize) -> Option<()>) {
    for seed in 0..8 {
        (0..1000).find_map(|polls| cut_off(seed, polls)).unwrap();
    }
}

#[test]
fn try_acquire_dropped_at_every_poll_leaves_nothing() {
    async fn begin(client: Client) -> Result<(), Error> {
        client.try_acquire("k").await.map(drop)
    }
    dropped_at_every_poll::<Scene, _>(begin);
    dropped_at_every_poll::<Embedded, _>(begin);
}

#[test]
fn acquire_dropped_at_every_poll_leaves_nothing() {
    async fn begin(client: Client) -> Result<(), Error> {
        client.acquire("k").await.map(drop)
    }
    dropped_at_every_poll::<Scene, _>(begin);
    dropped_at_every_poll::<Embedded, _>(begin);
}

#[test]
fn release_dropped_at_every_poll_leaves_nothing() {
    async fn begin(client: Client) -> Result<(), Error> {
        let guard = client.acquire("k").await?;
        guard.release().await.map(drop)
    }
    dropped_at_every_poll::<Scene, _>(begin);
    dropped_at_every_poll::<Embedded, _>(begin);
}

#[test]
fn with_lock_dropped_at_every_poll_leaves_nothing() {
    async fn begin(client: Client) -> Result<(), Error> {
        let work = client.with_lock("k", |held| async move { held.check() });
        work.await?.map(drop).map_err(Error::from)
    }
    dropped_at_every_poll::<Scene, _>(begin);
    dropped_at_every_poll::<Embedded, _>(begin);
}

/// The same for one that waits behind a holder, who releases after a while.
fn waiting_dropped_at_every_poll<V: Venue>() {
    for_each_seed_and_poll(|seed, polls| {
        let venue = V::new(seed);
        let (client, other) = (venue.client("mine"), venue.client("other"));
        let holder = venue.run(acquired(&other, "k"));
        let waiting = async { client.acquire("k").await.map(drop) };
        let releasing = async {
            venue.runtime().sleep(seconds(3)).await;
            holder.release().await.unwrap();
        };
        let both = async { tokio::join!(polled_at_most(waiting, polls), releasing) };
        let (done, ()) = venue.run(both);
        venue.pass(seconds(6));
        assert_eq!(venue.residue(), [""; 0], "seed {seed}, after {polls} polls");
        done.map(|outcome| {
            outcome.unwrap();
            assert!(polls > 3, "it was never cut off while it waited");
        })
    });
}

/// Shutdown once begun goes on by itself.
fn shutdown_dropped_at_every_poll<V: Venue>() {
    for_each_seed_and_poll(|seed, polls| {
        let venue = V::new(seed);
        let client = venue.client("mine");
        let guard = venue.run(acquired(&client, "k"));
        let shutdown = client.clone().shutdown();
        let done = venue.run(polled_at_most(shutdown, polls + 1));
        venue.pass(millis(10));
        assert_eq!(venue.residue(), [""; 0], "seed {seed}, after {polls} polls");
        assert!(!guard.is_held());
        done.map(drop)
    });
}

#[test]
fn waiting_acquire_dropped_at_every_poll_leaves_nothing() {
    waiting_dropped_at_every_poll::<Scene>();
    waiting_dropped_at_every_poll::<Embedded>();
}

#[test]
fn shutdown_dropped_at_every_poll_goes_on() {
    shutdown_dropped_at_every_poll::<Scene>();
    shutdown_dropped_at_every_poll::<Embedded>();
}
