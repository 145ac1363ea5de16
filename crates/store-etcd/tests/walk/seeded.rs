//! Real time and real tasks, but chance from a seed: what is drawn can be drawn again, though not
//! what happens in between.

use std::sync::Mutex;
use std::time::Duration;

use lock_spi::{BoxFuture, Instant, Runtime, TokioRuntime};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

#[derive(Debug)]
pub(crate) struct Seeded {
    tokio: TokioRuntime,
    chance: Mutex<ChaCha8Rng>,
}

impl Seeded {
    /// Of the tokio runtime that this code runs in; streams of one seed are independent.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        chance.set_stream(stream);
        Self {
            tokio: TokioRuntime::current(),
            chance: Mutex::new(chance),
        }
    }
}

impl Runtime for Seeded {
    fn now(&self) -> Instant {
        self.tokio.now()
    }

    fn wall_clock(&self) -> Duration {
        self.tokio.wall_clock()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        self.tokio.sleep_until(deadline)
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.tokio.spawn(task);
    }

    fn random(&self) -> u64 {
        self.chance.lock().unwrap().next_u64()
    }
}
