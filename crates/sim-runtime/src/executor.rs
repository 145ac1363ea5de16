//! Tasks, timers and the order in which they run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lock_spi::BoxFuture;

use crate::chance::Chance;
use crate::trace::Trace;

/// The stream of draws that decides which task runs next.
const SCHEDULE: u64 = 0;
/// More steps than this at one moment, and the tasks only wake each other.
const SPIN_LIMIT: u64 = 5_000_000;
/// The task that [`World::block_on`](crate::World::block_on) waits for.
pub(crate) const MAIN: u64 = 0;

/// Numbers the nodes of a world, and names the stream of their draws.
pub(crate) type NodeId = u64;

pub(crate) struct Executor {
    state: Mutex<State>,
    ready: Arc<Ready>,
}

struct State {
    now: Duration,
    tasks: BTreeMap<u64, Task>,
    next_task: u64,
    dead: BTreeSet<NodeId>,
    timers: BTreeMap<(Duration, u64), Waker>,
    next_timer: u64,
    schedule: Chance,
    trace: Trace,
    /// Since the clock last moved.
    steps: u64,
    panics: u64,
}

struct Task {
    node: NodeId,
    future: BoxFuture<()>,
}

/// The tasks that can run. Apart from the rest, because tasks are woken while others are polled.
#[derive(Default)]
struct Ready(Mutex<BTreeSet<u64>>);

struct TaskWaker {
    task: u64,
    ready: Arc<Ready>,
}

/// What the next step is.
pub(crate) enum Step {
    /// This task can run.
    Run(u64),
    /// Time stands still although tasks run and run.
    Spinning,
    /// Nothing can ever run again.
    Stuck,
}

impl Executor {
    pub(crate) fn new(seed: u64) -> Self {
        let state = State {
            now: Duration::ZERO,
            tasks: BTreeMap::new(),
            next_task: MAIN + 1,
            dead: BTreeSet::new(),
            timers: BTreeMap::new(),
            next_timer: 0,
            schedule: Chance::new(seed, SCHEDULE),
            trace: Trace::default(),
            steps: 0,
            panics: 0,
        };
        Self {
            state: Mutex::new(state),
            ready: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Duration {
        self.state().now
    }

    pub(crate) fn note(&self, words: &str) {
        self.state().trace.add(words.as_bytes());
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        self.state().trace.hash()
    }

    pub(crate) fn panics(&self) -> u64 {
        self.state().panics
    }

    pub(crate) fn spawn(&self, node: NodeId, future: BoxFuture<()>) {
        let mut state = self.state();
        if state.dead.contains(&node) {
            drop(state);
            drop(future);
            return;
        }
        let id = state.next_task;
        state.next_task += 1;
        state.tasks.insert(id, Task { node, future });
        drop(state);
        self.ready.push(id);
    }

    /// Ends all tasks of a node; it never runs one again.
    pub(crate) fn kill(&self, node: NodeId) {
        let mut state = self.state();
        state.dead.insert(node);
        let (dying, living): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut state.tasks)
            .into_iter()
            .partition(|(_, task)| task.node == node);
        state.tasks = living;
        drop(state);
        // Their drops use the executor.
        drop(dying);
    }

    pub(crate) fn waker(&self, task: u64) -> Waker {
        Waker::from(Arc::new(TaskWaker {
            task,
            ready: Arc::clone(&self.ready),
        }))
    }

    pub(crate) fn make_ready(&self, task: u64) {
        self.ready.push(task);
    }

    /// Registers or moves a timer; answers with its name.
    pub(crate) fn set_timer(&self, deadline: Duration, waker: Waker) -> (Duration, u64) {
        let mut state = self.state();
        let name = (deadline, state.next_timer);
        state.next_timer += 1;
        drop(state.timers.insert(name, waker));
        name
    }

    pub(crate) fn clear_timer(&self, name: (Duration, u64)) {
        let waker = self.state().timers.remove(&name);
        drop(waker);
    }

    /// Chooses what runs next, moving the clock when nothing can run now.
    pub(crate) fn next(&self) -> Step {
        loop {
            let mut state = self.state();
            let mut ready = self.ready.lock();
            if !ready.is_empty() {
                let at = state.schedule.below(ready.len());
                let Some(task) = ready.iter().nth(at).copied() else {
                    continue;
                };
                ready.remove(&task);
                state.steps += 1;
                if state.steps > SPIN_LIMIT {
                    return Step::Spinning;
                }
                let now = state.now;
                state.trace.add(&task.to_le_bytes());
                state.trace.add(&now.as_nanos().to_le_bytes());
                return Step::Run(task);
            }
            drop(ready);
            let Some((&(due, _), _)) = state.timers.first_key_value() else {
                return Step::Stuck;
            };
            state.now = state.now.max(due);
            state.steps = 0;
            let later = state.timers.split_off(&(due, u64::MAX));
            let fired = std::mem::replace(&mut state.timers, later);
            drop(state);
            fired.into_values().for_each(Waker::wake);
        }
    }

    /// Polls a spawned task once.
    pub(crate) fn poll(&self, id: u64) {
        let Some(mut task) = self.state().tasks.remove(&id) else {
            return;
        };
        let waker = self.waker(id);
        let mut context = Context::from_waker(&waker);
        // A panic ends its task and nothing else, as on tokio.
        let future = &mut task.future;
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
        let mut state = self.state();
        match polled {
            // Unless it killed its own node.
            Ok(Poll::Pending) if !state.dead.contains(&task.node) => {
                state.tasks.insert(id, task);
                return;
            }
            Ok(Poll::Pending | Poll::Ready(())) => {}
            Err(_) => state.panics += 1,
        }
        // Its drop uses the executor.
        drop(state);
        drop(task);
    }

    /// Drops every task; their drops may spawn more, which are dropped as well.
    pub(crate) fn clear(&self) {
        loop {
            let tasks = std::mem::take(&mut self.state().tasks);
            let timers = std::mem::take(&mut self.state().timers);
            if tasks.is_empty() && timers.is_empty() {
                return;
            }
            drop(tasks);
            drop(timers);
        }
    }
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: u64) {
        self.lock().insert(task);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.task);
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
