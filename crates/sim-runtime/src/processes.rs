use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_spi::Runtime;

use crate::executor::{Executor, State};
use crate::node_runtime::NodeRuntime;
use crate::nodes::NodeId;

/// What can befall the nodes of a world, from inside of it: a handle for tasks that do it.
///
/// A name stands for every node of that name which was not killed. Once the world is over, nothing
/// happens.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use sim_runtime::World;
///
/// let world = World::new(7);
/// let (sleeper, director) = (world.runtime("sleeper"), world.runtime("director"));
/// let processes = world.processes();
/// processes.pause("sleeper");
/// let slept = sleeper.run_to_end(sleeper.sleep(Duration::from_secs(1)));
/// director.spawn(Box::pin({
///     let sleep = director.sleep(Duration::from_secs(9));
///     async move {
///         sleep.await;
///         processes.resume("sleeper");
///     }
/// }));
/// world.block_on(slept).unwrap();
/// assert_eq!(world.elapsed(), Duration::from_secs(9));
/// ```
#[derive(Clone)]
pub struct Processes(pub(crate) Weak<Executor>);

impl Processes {
    fn each(&self, name: &str, act: impl Fn(&Executor, NodeId)) {
        if let Some(executor) = self.0.upgrade() {
            let nodes: Vec<NodeId> = executor.state().nodes.named(name).collect();
            for node in nodes {
                act(&executor, node);
            }
        }
    }

    /// The runtime of a new node, which begins now.
    #[must_use]
    pub fn runtime(&self, name: impl AsRef<str>) -> Arc<dyn Runtime> {
        let name: Arc<str> = name.as_ref().into();
        let executor = self.0.upgrade();
        let id = executor.map_or(0, |executor| executor.state().nodes.add(Arc::clone(&name)));
        Arc::new(NodeRuntime {
            executor: Weak::clone(&self.0),
            id,
            name,
        })
    }

    /// Time since the world began, on the world's own clock.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let executor = self.0.upgrade();
        executor.map_or(Duration::MAX, |executor| {
            Duration::from_nanos(executor.state().now)
        })
    }

    /// Ends every task of the node, wherever it stands, as killing a process does. Its runtime runs
    /// nothing any more; the node that starts again is another one.
    ///
    /// What a node has sent goes on by itself only if the network has a runtime of its own.
    pub fn kill(&self, name: &str) {
        self.each(name, Executor::kill);
    }

    /// The node's tasks stand still, while its clocks go on, as those of a process that is not given
    /// the processor.
    pub fn pause(&self, name: &str) {
        self.each(name, |executor, node| executor.state().nodes.pause(node));
    }

    /// The node's tasks go on.
    pub fn resume(&self, name: &str) {
        self.each(name, Executor::resume);
    }

    /// The node's clocks go so many parts per million fast from now on, or slow when negative; a
    /// million slow, they stand still.
    pub fn set_clock_rate(&self, name: &str, parts_per_million: i64) {
        self.each(name, |executor, node| {
            executor.tamper(node, |State { nodes, now, .. }| {
                if let Some(clock) = nodes.clock_mut(node) {
                    clock.set_rate(*now, parts_per_million);
                }
            });
        });
    }

    /// The node's clocks skip some time at once.
    pub fn jump_clock(&self, name: &str, ahead: Duration) {
        self.each(name, |executor, node| {
            executor.tamper(node, |State { nodes, now, .. }| {
                if let Some(clock) = nodes.clock_mut(node) {
                    clock.jump(*now, ahead);
                }
            });
        });
    }

    /// Somebody sets the node's wall clock, ahead or back. No other clock of it moves.
    pub fn step_wall_clock(&self, name: &str, seconds: i64) {
        self.each(name, |executor, node| {
            if let Some(clock) = executor.state().nodes.clock_mut(node) {
                clock.step_wall(seconds);
            }
        });
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processes").finish_non_exhaustive()
    }
}
