use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_spi::{BoxFuture, Instant, Runtime};

use crate::chance::Chance;
use crate::executor::{Executor, MAIN, NodeId, Step};

/// Where a world's wall clocks begin: 2020-01-01, so that what they show is plausible.
const WALL_CLOCK_ORIGIN: Duration = Duration::from_secs(1_577_836_800);

/// A deterministic world: one clock, one thread, one seed.
#[derive(Debug)]
pub struct World {
    executor: Arc<Executor>,
    seed: u64,
    /// The names of the nodes so far; the first is node 1.
    nodes: Mutex<Vec<String>>,
}

/// A node's runtime in a [`World`].
struct NodeRuntime {
    // Weak: tasks own runtimes, and the world owns the tasks.
    executor: Weak<Executor>,
    id: NodeId,
    name: String,
    chance: Mutex<Chance>,
}

impl World {
    /// A world that this seed decides altogether.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            executor: Arc::new(Executor::new(seed)),
            seed,
            nodes: Mutex::default(),
        }
    }

    /// The runtime of a new node, with a random stream of its own.
    #[must_use]
    pub fn runtime(&self, name: impl Into<String>) -> Arc<dyn Runtime> {
        let name = name.into();
        let mut nodes = self.nodes();
        nodes.push(name.clone());
        let id = NodeId::try_from(nodes.len()).unwrap_or(NodeId::MAX);
        Arc::new(NodeRuntime {
            executor: Arc::downgrade(&self.executor),
            id,
            name,
            chance: Mutex::new(Chance::new(self.seed, id)),
        })
    }

    /// Ends every task of the nodes of this name, wherever they stand, as killing a process does.
    /// Their runtimes run nothing any more; the node that starts again is another one.
    ///
    /// What a node has sent goes on by itself only if the network has a runtime of its own.
    pub fn kill(&self, name: &str) {
        let nodes = self.nodes().clone();
        for (id, node) in (1..).zip(nodes) {
            if node == name {
                self.executor.kill(id);
            }
        }
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<String>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs everything until `future` is done, and answers what it answers. What was spawned and is
    /// not done stays, for the next call.
    ///
    /// # Panics
    ///
    /// When `future` waits for something that can no longer happen, or tasks only wake each other
    /// and time stands still; and with `future`.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let waker = self.executor.waker(MAIN);
        self.executor.make_ready(MAIN);
        loop {
            match self.executor.next() {
                Step::Run(MAIN) => {
                    if let Poll::Ready(output) =
                        future.as_mut().poll(&mut Context::from_waker(&waker))
                    {
                        return output;
                    }
                }
                Step::Run(task) => self.executor.poll(task),
                Step::Spinning => panic!("seed {}: the clock stands still", self.seed),
                Step::Stuck => panic!("seed {}: everybody waits and no timer runs", self.seed),
            }
        }
    }

    /// Virtual time since the world began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.executor.now()
    }

    /// How many tasks ended by a panic. Each was contained, and may have gone unnoticed.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.executor.panics()
    }

    /// Adds something that happened to the trace.
    pub fn note(&self, words: &str) {
        self.executor.note(words);
    }

    /// A hash of everything that happened so far, the order of all steps included. Two runs of one
    /// seed have the same.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.executor.trace_hash()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Tasks hold what holds tasks; nothing would ever be freed.
        self.executor.clear();
    }
}

impl NodeRuntime {
    fn now(&self) -> Duration {
        self.executor
            .upgrade()
            .map_or(Duration::MAX, |executor| executor.now())
    }
}

impl Runtime for NodeRuntime {
    fn now(&self) -> Instant {
        Instant::from_origin(Self::now(self))
    }

    fn wall_clock(&self) -> Duration {
        WALL_CLOCK_ORIGIN.saturating_add(Self::now(self))
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let executor = Weak::clone(&self.executor);
        Box::pin(Sleep {
            executor,
            deadline: deadline.since_origin(),
            timer: None,
        })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        // A world that has ended runs nothing any more.
        if let Some(executor) = self.executor.upgrade() {
            executor.spawn(self.id, task);
        }
    }

    fn random(&self) -> u64 {
        self.chance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .draw()
    }
}

impl fmt::Debug for NodeRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeRuntime").field(&self.name).finish()
    }
}

struct Sleep {
    executor: Weak<Executor>,
    deadline: Duration,
    timer: Option<((Duration, u64), Waker)>,
}

impl Sleep {
    fn clear(&mut self) {
        if let (Some((name, _)), Some(executor)) = (self.timer.take(), self.executor.upgrade()) {
            executor.clear_timer(name);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(executor) = self.executor.upgrade() else {
            return Poll::Pending;
        };
        if executor.now() >= self.deadline {
            self.clear();
            return Poll::Ready(());
        }
        let waker = context.waker();
        if self
            .timer
            .as_ref()
            .is_none_or(|(_, known)| !known.will_wake(waker))
        {
            self.clear();
            let name = executor.set_timer(self.deadline, waker.clone());
            self.timer = Some((name, waker.clone()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(seed: u64) -> (u64, Vec<u64>) {
        let world = World::new(seed);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let runtimes: Vec<_> = (0..3_u8)
            .map(|node| world.runtime(format!("{node}")))
            .collect();
        for (node, runtime) in (0..).zip(&runtimes) {
            let (heard, own) = (Arc::clone(&heard), Arc::clone(runtime));
            runtime.spawn(Box::pin(async move {
                for _ in 0..10 {
                    own.sleep(own.jitter(Duration::from_millis(10))).await;
                    heard.lock().unwrap().push(node);
                }
            }));
        }
        world.block_on(runtimes[0].sleep(Duration::from_secs(1)));
        let heard = heard.lock().unwrap().clone();
        (world.trace_hash(), heard)
    }

    #[test]
    fn one_seed_is_one_run() {
        assert_eq!(story(1), story(1));
        assert_ne!(story(1), story(2));
        assert_eq!(story(1).1.len(), 30);
    }

    #[test]
    fn nodes_of_one_seed_draw_differently() {
        let world = World::new(5);
        let (a, b) = (world.runtime("a"), world.runtime("b"));
        assert_ne!(a.random(), b.random());
    }

    #[test]
    fn a_panic_ends_its_task_only() {
        let world = World::new(1);
        let runtime = world.runtime("a");
        let lost = world.block_on(runtime.run_to_end(async {
            if true {
                panic!("planted")
            }
        }));
        assert!(lost.is_err());
        assert_eq!(world.panics(), 1);
        assert_eq!(world.block_on(runtime.run_to_end(async { 3 })), Ok(3));
    }

    #[test]
    fn a_killed_node_stops_where_it_stands_and_takes_up_nothing_new() {
        let world = World::new(1);
        let (doomed, other) = (world.runtime("doomed"), world.runtime("other"));
        let limit = Duration::from_secs(2);
        let ours = doomed.run_to_end(doomed.sleep(Duration::from_secs(1)));
        let others = other.run_to_end(other.sleep(Duration::from_secs(1)));
        world.kill("doomed");
        assert!(world.block_on(ours).is_err());
        assert!(world.block_on(doomed.run_to_end(async {})).is_err());
        assert_eq!(world.block_on(others), Ok(()));
        let reborn = world.runtime("doomed");
        let alive = world.block_on(other.timeout(limit, reborn.run_to_end(async {})));
        assert_eq!(alive, Ok(Ok(())));
    }

    #[test]
    #[should_panic(expected = "everybody waits")]
    fn a_hang_is_told() {
        World::new(1).block_on(std::future::pending::<()>());
    }

    #[test]
    #[should_panic(expected = "the clock stands still")]
    fn a_livelock_is_told() {
        World::new(1).block_on(std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
    }

    #[test]
    fn what_is_dropped_early_fires_no_timer() {
        let world = World::new(1);
        let runtime = world.runtime("a");
        drop(runtime.sleep(Duration::from_secs(9)));
        let late =
            world.block_on(runtime.timeout(Duration::from_secs(1), std::future::pending::<()>()));
        assert!(late.is_err());
        assert_eq!(world.elapsed(), Duration::from_secs(1));
    }
}
