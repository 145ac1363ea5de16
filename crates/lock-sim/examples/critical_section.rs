//! Does a critical section survive? Three clients count under a lock, in worlds in which processes
//! stand still, links break and leaders change. Whoever stands still between its look at the lock
//! and its write does not know that the lock has passed on: only the resource can refuse it.
//!
//! ```sh
//! cargo run --release -p lock-sim --example critical_section
//! ```

#![allow(
    clippy::print_stdout,
    reason = "an example talks to the person who runs it"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_sim::{Faults, Node, Report, Resource, ResourceError, Simulation};

const SEEDS: u64 = 200;
const PAUSE: Duration = Duration::from_millis(100);

/// How the counter is read and written.
#[derive(Clone, Copy)]
enum Way {
    /// With the token: the counter refuses older ones than it has seen.
    Fenced,
    /// After a look at the lock, and trusting in it.
    Trusting,
}

fn main() {
    let fenced = count(Way::Fenced);
    println!("with tokens:    {fenced}");
    fenced.assert_ok();

    let trusting = count(Way::Trusting);
    println!("without tokens: {trusting}");
    assert!(!trusting.is_ok(), "an update was lost, and nobody noticed");
}

fn count(way: Way) -> Report {
    Simulation::seeds(0..SEEDS)
        .faults(Faults::usual())
        .simulated_time(Duration::from_secs(60))
        .run(|world| {
            let counter = world.resource("counter");
            let acknowledged = Arc::new(AtomicU64::new(0));
            let (resource, done) = (counter.clone(), Arc::clone(&acknowledged));
            world.clients(3, move |node| {
                let (counter, done) = (resource.clone(), Arc::clone(&done));
                async move {
                    loop {
                        node.sleep(PAUSE).await;
                        if let Some(Ok(())) = increment(&node, &counter, way).await {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            world.check("no update is lost", move || {
                counter.value() >= acknowledged.load(Ordering::Relaxed)
            });
        })
}

/// Adds one under the lock; `None` when it could not be had.
async fn increment(node: &Node, counter: &Resource, way: Way) -> Option<Result<(), ResourceError>> {
    let guard = node.locks().acquire("counter").await.ok()?;
    let written = match way {
        Way::Fenced => {
            let value = counter.read_fenced(node, guard.token()).await.ok()?;
            counter.write_fenced(node, value + 1, guard.token()).await
        }
        Way::Trusting => {
            let value = counter.read(node).await.ok()?;
            guard.check().ok()?;
            counter.write(node, value + 1).await
        }
    };
    // Where it has no answer, the client goes on by itself.
    drop(guard.release().await);
    Some(written)
}
