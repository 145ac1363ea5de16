//! Tasks, timers and the order in which they run.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use lock_spi::BoxFuture;

use crate::nodes::{NodeId, Nodes};
use crate::tape::Recorder;
use crate::trace::Trace;

/// More steps than this at one moment, and the tasks only wake each other.
const SPIN_LIMIT: u64 = 5_000_000;

/// The future that [`World::block_on`](crate::World::block_on) waits for; no task stands there.
const MAIN: usize = usize::MAX;

pub(crate) struct Executor {
    state: Mutex<State>,
    ready: Arc<Ready>,
}

pub(crate) struct State {
    /// On the clock of the world, in nanoseconds.
    pub(crate) now: u64,
    pub(crate) nodes: Nodes,
    pub(crate) recorder: Recorder,
    pub(crate) trace: Trace,
    pub(crate) panics: u64,
    tasks: Vec<Option<Task>>,
    /// Places in `tasks` where none stands.
    free: Vec<usize>,
    spawned: u64,
    timers: BTreeMap<TimerName, Timer>,
    next_timer: u64,
    /// Since the clock last moved.
    steps: u64,
}

/// When it fires, and a number that no other timer has.
pub(crate) type TimerName = (u64, u64);

struct Timer {
    node: NodeId,
    waker: Waker,
}

struct Task {
    node: NodeId,
    /// Not here while it runs.
    future: Option<BoxFuture<()>>,
    alarm: Arc<Alarm>,
    waker: Waker,
}

/// The tasks that can run. Apart from the rest, because tasks are woken while others are polled.
#[derive(Default)]
struct Ready(Mutex<Queue>);

/// Those that waited longest come first; of those that were woken in one step, the oldest. In which
/// order a step wakes them is not asked: it may differ from run to run, as some primitives of tokio
/// choose by chance of their own whom they wake first.
#[derive(Default)]
struct Queue {
    step: u64,
    woken: Vec<(u64, Arc<Alarm>)>,
}

/// Makes a task run.
pub(crate) struct Alarm {
    place: usize,
    /// Which of the tasks that stand at that place one after the other.
    serial: u64,
    rung: AtomicBool,
    ready: Arc<Ready>,
}

/// What the next step is.
pub(crate) enum Step {
    /// The future that is waited for can run.
    Main,
    /// This task can run.
    Run(Arc<Alarm>),
    /// Time stands still although tasks run and run.
    Spinning,
    /// Nothing can ever run again.
    Stuck,
}

impl Executor {
    pub(crate) fn new(mut recorder: Recorder) -> Self {
        let state = State {
            now: 0,
            nodes: Nodes::new(recorder.below(u64::MAX)),
            recorder,
            trace: Trace::default(),
            panics: 0,
            tasks: Vec::new(),
            free: Vec::new(),
            spawned: 0,
            timers: BTreeMap::new(),
            next_timer: 0,
            steps: 0,
        };
        Self {
            state: Mutex::new(state),
            ready: Arc::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn spawn(&self, node: NodeId, future: BoxFuture<()>) {
        let mut state = self.state();
        if state.nodes.is_dead(node) {
            drop(state);
            drop(future);
            return;
        }
        state.spawned += 1;
        let serial = state.spawned;
        let place = state.free.pop().unwrap_or(state.tasks.len());
        let alarm = self.alarm(place, serial);
        let task = Task {
            node,
            future: Some(future),
            waker: Waker::from(Arc::clone(&alarm)),
            alarm: Arc::clone(&alarm),
        };
        match state.tasks.get_mut(place) {
            Some(free) => *free = Some(task),
            None => state.tasks.push(Some(task)),
        }
        drop(state);
        alarm.wake();
    }

    fn alarm(&self, place: usize, serial: u64) -> Arc<Alarm> {
        Arc::new(Alarm {
            place,
            serial,
            rung: AtomicBool::new(false),
            ready: Arc::clone(&self.ready),
        })
    }

    /// What wakes the future that is waited for.
    pub(crate) fn main_waker(&self) -> Waker {
        Waker::from(self.alarm(MAIN, 0))
    }

    /// Ends all tasks of a node; it never runs one again.
    pub(crate) fn kill(&self, node: NodeId) {
        let mut state = self.state();
        let State {
            nodes, tasks, free, ..
        } = &mut *state;
        let parked = nodes.kill(node);
        let mut dying = Vec::new();
        for (place, task) in tasks.iter_mut().enumerate() {
            // One that runs at this moment ends when it comes back.
            if task
                .as_ref()
                .is_some_and(|task| task.node == node && task.future.is_some())
            {
                dying.extend(task.take());
                free.push(place);
            }
        }
        drop(state);
        // Their drops use the executor.
        drop(dying);
        drop(parked);
    }

    /// Lets a node's tasks run again.
    pub(crate) fn resume(&self, node: NodeId) {
        let parked = self.state().nodes.resume(node);
        let mut ready = self.ready.lock();
        parked.into_iter().for_each(|alarm| ready.push(alarm));
    }

    /// Registers a timer; answers with its name.
    pub(crate) fn set_timer(state: &mut State, node: NodeId, due: u64, waker: Waker) -> TimerName {
        let name = (due, state.next_timer);
        state.next_timer += 1;
        drop(state.timers.insert(name, Timer { node, waker }));
        name
    }

    pub(crate) fn clear_timer(&self, name: TimerName) {
        let timer = self.state().timers.remove(&name);
        drop(timer);
    }

    /// Changes a node's clock, and wakes those who sleep by it.
    pub(crate) fn tamper(&self, node: NodeId, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let theirs = state.timers.iter().filter(|(_, timer)| timer.node == node);
        let names: Vec<TimerName> = theirs.map(|(name, _)| *name).collect();
        let timers: Vec<Timer> = names
            .iter()
            .filter_map(|name| state.timers.remove(name))
            .collect();
        drop(state);
        timers.into_iter().for_each(|timer| timer.waker.wake());
    }

    /// Chooses what runs next, moving the clock when nothing can run now.
    pub(crate) fn next(&self) -> Step {
        let mut state = self.state();
        loop {
            let mut ready = self.ready.lock();
            while !ready.woken.is_empty() {
                let limit = u64::try_from(ready.woken.len()).unwrap_or(u64::MAX);
                let at = usize::try_from(state.recorder.below(limit)).unwrap_or(0);
                let (_, alarm) = ready.woken.remove(at);
                ready.step += 1;
                alarm.rung.store(false, Ordering::Relaxed);
                state.steps += 1;
                if state.steps > SPIN_LIMIT {
                    return Step::Spinning;
                }
                if alarm.place == MAIN {
                    return Step::Main;
                }
                let task = state.tasks.get(alarm.place).and_then(Option::as_ref);
                let Some(node) = task.filter(|task| task.alarm.serial == alarm.serial) else {
                    continue;
                };
                let node = node.node;
                let Some(alarm) = state.nodes.park(node, alarm) else {
                    continue;
                };
                let now = state.now;
                state.trace.add(alarm.serial);
                state.trace.add(now);
                return Step::Run(alarm);
            }
            drop(ready);
            let due = state.timers.first_key_value().map(|(&(due, _), _)| due);
            let Some(due) = due.filter(|&due| due < u64::MAX) else {
                return Step::Stuck;
            };
            state.now = state.now.max(due);
            state.steps = 0;
            while let Some(first) = state.timers.first_entry()
                && first.key().0 <= due
            {
                // An alarm only enters the list of those that can run.
                first.remove().waker.wake();
            }
        }
    }

    /// Polls a spawned task once.
    pub(crate) fn poll(&self, alarm: &Alarm) {
        let taken = self.state().tasks.get_mut(alarm.place).and_then(|task| {
            let task = task.as_mut()?;
            Some((task.future.take()?, task.waker.clone()))
        });
        let Some((mut future, waker)) = taken else {
            return;
        };
        let mut context = Context::from_waker(&waker);
        // A panic ends its task and nothing else, as on tokio.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
        let mut state = self.state();
        let State {
            tasks, nodes, free, ..
        } = &mut *state;
        let Some(place) = tasks.get_mut(alarm.place) else {
            return;
        };
        match (polled.as_ref(), place.as_mut()) {
            // Unless it killed its own node.
            (Ok(Poll::Pending), Some(task)) if !nodes.is_dead(task.node) => {
                task.future = Some(future);
                return;
            }
            _ => {}
        }
        let task = place.take();
        free.push(alarm.place);
        state.panics += u64::from(polled.is_err());
        // Their drops use the executor.
        drop(state);
        drop(future);
        drop(task);
    }

    /// Drops every task; their drops may spawn more, which are dropped as well.
    pub(crate) fn clear(&self) {
        loop {
            let mut state = self.state();
            let tasks = std::mem::take(&mut state.tasks);
            let timers = std::mem::take(&mut state.timers);
            state.free.clear();
            drop(state);
            let woken = std::mem::take(&mut self.ready.lock().woken);
            if tasks.is_empty() && timers.is_empty() && woken.is_empty() {
                return;
            }
            drop(tasks);
            drop(timers);
        }
    }
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, alarm: Arc<Alarm>) {
        let mine = (self.step, alarm.serial);
        let before = self.woken.iter().rev();
        let later = before.take_while(|(step, other)| (*step, other.serial) > mine);
        let place = self.woken.len() - later.count();
        self.woken.insert(place, (self.step, alarm));
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, Ordering::Relaxed) {
            let ready = Arc::clone(&self.ready);
            ready.lock().push(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.load(Ordering::Relaxed) {
            Arc::clone(self).wake();
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("now", &self.state().now)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm")
            .field("serial", &self.serial)
            .finish_non_exhaustive()
    }
}
