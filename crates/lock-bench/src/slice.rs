//! One arm, run for a while.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use lock_spi::{Instant, Runtime};

use crate::arms::{Arm, Keys};
use crate::cpu::Process;
use crate::hold::Hold;

/// How many keys a task has of its own.
const KEYS_OF_A_TASK: usize = 64;
/// This part of a slice passes before anything counts, so that what the arm before it left in the
/// server and in the processor's caches does not.
const WARM_UP: u32 = 5;

/// What is under way at the end of a slice has so much time to come to its own end.
const LONGEST_END: Duration = Duration::from_secs(120);

/// How a slice is run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) keys: Keys,
    pub(crate) tasks: u32,
    pub(crate) length: Duration,
    pub(crate) server: Process,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) hold: Hold,
}

/// What one arm did in one slice.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    /// How many operations ended in it, in a second in which nobody kept a lock.
    pub(crate) rate: f64,
    /// How long one took, in the middle; `None` when none ended.
    pub(crate) latency: Option<Duration>,
    /// The processor time of the server, for one operation.
    pub(crate) server_cpu: Option<Duration>,
    /// The processor time of this process, for one operation.
    pub(crate) client_cpu: Option<Duration>,
}

/// A moment, and the processor time used until then.
struct Mark {
    at: Instant,
    server: Option<Duration>,
    client: Option<Duration>,
    kept: Duration,
}

type Operation = (Instant, Instant);

impl Run {
    /// Runs an arm: each task does one operation after another. What is under way at the end comes
    /// to its own end, and does not count.
    pub(crate) async fn slice(&self, arm: &Arc<dyn Arm>) -> Result<Slice> {
        let runtime = &self.runtime;
        let from = runtime.now() + self.length / WARM_UP;
        let until = from + self.length;
        let tasks = (0..self.tasks).map(|task| {
            let (arm, runtime) = (Arc::clone(arm), Arc::clone(runtime));
            let keys = self.keys_of(task);
            let work = async move { work(&*arm, &*runtime, task, &keys, until).await };
            let task = self.runtime.run_to_end(work);
            async move { task.await.context("a task broke off")? }
        });
        let tasks: Vec<_> = tasks.collect();
        runtime.sleep_until(from).await;
        let begun = self.mark();
        runtime.sleep_until(until).await;
        let ended = self.mark();
        let done = runtime.timeout(LONGEST_END, try_join_all(tasks)).await;
        let done = done.context("what was under way does not come to its end")??;
        let mut latencies: Vec<_> = done
            .into_iter()
            .flatten()
            .filter(|&(_, at)| begun.at < at && at <= ended.at)
            .map(|(sent, at)| at.saturating_since(sent))
            .collect();
        latencies.sort_unstable();
        let operations = u32::try_from(latencies.len())?;
        let each = |from: Option<Duration>, to: Option<Duration>| {
            to?.checked_sub(from?)?.checked_div(operations)
        };
        let length = ended.at.saturating_since(begun.at);
        let length = length.saturating_sub(ended.kept.saturating_sub(begun.kept));
        Ok(Slice {
            rate: f64::from(operations) / length.as_secs_f64(),
            latency: latencies.get(latencies.len() / 2).copied(),
            server_cpu: each(begun.server, ended.server),
            client_cpu: each(begun.client, ended.client),
        })
    }

    fn keys_of(&self, task: u32) -> Vec<String> {
        match self.keys {
            Keys::Distinct => (0..KEYS_OF_A_TASK)
                .map(|number| format!("task-{task}-key-{number}"))
                .collect(),
            Keys::Hot | Keys::Held => vec!["hot".to_owned()],
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            at: self.runtime.now(),
            server: self.server.used(),
            client: Process::own().used(),
            kept: self.hold.kept(),
        }
    }
}

async fn work(
    arm: &dyn Arm,
    runtime: &dyn Runtime,
    task: u32,
    keys: &[String],
    until: Instant,
) -> Result<Vec<Operation>> {
    let mut done = Vec::new();
    for key in keys.iter().cycle() {
        let begun = runtime.now();
        if begun >= until {
            break;
        }
        arm.once(task, key).await?;
        done.push((begun, runtime.now()));
    }
    Ok(done)
}
