//! Two workers want one lock. The holder stalls, the other is granted a higher token, and the
//! resource refuses what the first one writes when it wakes.
//!
//! Run it with `cargo run --example first_lock`; it takes about four seconds.

// A thread that really stalls, and a person who reads along, are what this is about.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fencelock::fence::{HighWaterMark, Stale};
use fencelock::spi::FencingToken;
use fencelock::{Attempt, Client};
use tokio::sync::oneshot;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// One embedded store for both workers; locks that are not renewed end after a second.
const STORE: &str = "memory:first-lock?ttl=1s";
const KEY: &str = "nightly-report";

/// What the lock protects: it refuses tokens lower than the highest it has seen.
struct Report {
    begun: Instant,
    highest: HighWaterMark,
    text: Mutex<String>,
}

impl Report {
    fn write(&self, worker: &str, token: FencingToken, text: &str) -> Result<(), Stale> {
        let written = self.highest.admit(token);
        match &written {
            Ok(()) => {
                *self.text() = text.to_owned();
                self.tell(
                    worker,
                    &format!("writes with token {token}: admitted, none higher was seen"),
                );
            }
            Err(stale) => {
                let highest = stale.highest;
                self.tell(
                    worker,
                    &format!("writes with token {token}: refused, {highest} was seen"),
                );
            }
        }
        written
    }

    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, worker: &str, what: &str) {
        println!(
            "{:5.2} s  {worker}  {what}",
            self.begun.elapsed().as_secs_f32()
        );
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let report = Arc::new(Report {
        begun: Instant::now(),
        highest: HighWaterMark::new(),
        text: Mutex::default(),
    });
    let locks = Client::connect(&format!("{STORE}&owner=B")).await?;

    let (has_begun, begun) = oneshot::channel();
    let first = thread::spawn({
        let report = Arc::clone(&report);
        move || worker_a(&report, has_begun)
    });
    begun.await?;
    let token = worker_b(&report, &locks).await?;
    let refused = first.join().map_err(|_| "worker A panicked")??;

    let text = report.text().clone();
    locks.shutdown().await;
    println!(
        "Shown: B's token {token} is above A's token {}, so A's late write was refused \
         and the report is still {text:?}.",
        refused.token
    );
    Ok(())
}

/// Takes the lock on a thread of its own and then stalls, so that nothing renews the lock.
fn worker_a(report: &Report, has_begun: oneshot::Sender<()>) -> Outcome<Stale> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let locks = Client::connect(&format!("{STORE}&owner=A")).await?;
        let guard = locks.acquire(KEY).await?;
        report.tell(
            "A",
            &format!(
                "is granted {KEY} with token {}: nobody held it",
                guard.token()
            ),
        );
        report.write("A", guard.check()?, "by A")?;
        report.tell(
            "A",
            "stalls for 3 s: its thread is blocked and renews nothing",
        );
        has_begun.send(()).map_err(|()| "worker B is gone")?;
        thread::sleep(Duration::from_secs(3));

        report.tell(
            "A",
            "wakes up, and does not look at its guard before it writes",
        );
        let Err(refused) = report.write("A", guard.token(), "by A, late") else {
            return Err("the late write was admitted".into());
        };
        if let Err(lost) = guard.check() {
            report.tell("A", &format!("looks at its guard: {}", lost.reason));
        }
        locks.shutdown().await;
        Ok(refused)
    })
}

/// Waits for the lock and writes.
async fn worker_b(report: &Report, locks: &Client) -> Outcome<FencingToken> {
    if let Attempt::Held(Some(holder)) = locks.try_acquire(KEY).await? {
        let (owner, token) = (&holder.owner, holder.token);
        report.tell(
            "B",
            &format!("is refused {KEY}: {owner} holds it with token {token}; it waits"),
        );
    }
    let guard = locks.acquire(KEY).await?;
    let token = guard.check()?;
    report.tell(
        "B",
        &format!("is granted {KEY} with token {token}: A was not heard of for its ttl"),
    );
    report.write("B", token, "by B")?;
    guard.release().await?;
    Ok(token)
}
