use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_spi::{BoxFuture, Instant, Runtime};

use crate::executor::Executor;
use crate::nodes::NodeId;
use crate::sleep::Sleep;

/// Where a world's wall clocks begin: 2020-01-01, so that what they show is plausible.
const WALL_CLOCK_ORIGIN: Duration = Duration::from_secs(1_577_836_800);

/// A node's runtime in a [`World`](crate::World).
pub(crate) struct NodeRuntime {
    // Weak: tasks own runtimes, and the world owns the tasks.
    pub(crate) executor: Weak<Executor>,
    pub(crate) id: NodeId,
    pub(crate) name: Arc<str>,
}

impl NodeRuntime {
    fn with<T>(&self, otherwise: T, ask: impl FnOnce(&Executor) -> T) -> T {
        self.executor
            .upgrade()
            .map_or(otherwise, |executor| ask(&executor))
    }

    fn shown(&self) -> u64 {
        self.with(u64::MAX, |executor| {
            let state = executor.state();
            let clock = state.nodes.clock(self.id);
            clock.map_or(state.now, |clock| clock.at(state.now))
        })
    }
}

impl Runtime for NodeRuntime {
    fn now(&self) -> Instant {
        Instant::from_origin(Duration::from_nanos(self.shown()))
    }

    fn wall_clock(&self) -> Duration {
        let shown = self.shown();
        self.with(WALL_CLOCK_ORIGIN, |executor| {
            let state = executor.state();
            let clock = state.nodes.clock(self.id);
            clock.map_or(WALL_CLOCK_ORIGIN, |clock| {
                clock.wall(WALL_CLOCK_ORIGIN, shown)
            })
        })
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let deadline = u64::try_from(deadline.since_origin().as_nanos()).unwrap_or(u64::MAX);
        Box::pin(Sleep::new(Weak::clone(&self.executor), self.id, deadline))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        // A world that has ended runs nothing any more.
        if let Some(executor) = self.executor.upgrade() {
            executor.spawn(self.id, task);
        }
    }

    fn random(&self) -> u64 {
        self.with(0, |executor| executor.state().nodes.draw_name(self.id))
    }

    fn random_below(&self, limit: u64) -> u64 {
        self.with(0, |executor| executor.state().recorder.below(limit))
    }
}

impl fmt::Debug for NodeRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeRuntime").field(&self.name).finish()
    }
}
