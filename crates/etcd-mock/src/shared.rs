//! What the clones of a store share: the state machine, who waits for it, and its clock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use etcd_kv::KvError;

use crate::clock::Clock;
use crate::engine::{CallId, Effect, Engine, Event};
use crate::facts::Fact;
use crate::request::{Request, Response, StreamId};

/// One store.
pub(crate) struct Shared {
    core: Mutex<Core>,
    clock: Option<Clock>,
    observer: OnceLock<Observer>,
}

/// Is told of everything that becomes true.
pub(crate) type Observer = Box<dyn Fn(Fact) + Send + Sync>;

struct Core {
    engine: Engine,
    next_call: u64,
    wakers: BTreeMap<StreamId, Waker>,
    /// The tick that the clock's driver sleeps until.
    driven_until: Option<u64>,
}

impl Shared {
    pub(crate) const fn new(engine: Engine, clock: Option<Clock>) -> Self {
        let core = Core {
            engine,
            next_call: 1,
            wakers: BTreeMap::new(),
            driven_until: None,
        };
        Self {
            core: Mutex::new(core),
            clock,
            observer: OnceLock::new(),
        }
    }

    /// Tells `observer` of everything that becomes true from now on. There is one at most.
    pub(crate) fn observe(&self, observer: Observer) {
        if self.observer.set(observer).is_ok() {
            self.lock().engine.collect_facts();
        }
    }

    pub(crate) const fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Takes a request through all four phases at once. `None`: the server holds it up, and it is
    /// withdrawn.
    pub(crate) fn call(&self, request: Request) -> Option<Result<Response, KvError>> {
        self.run(|core, effects| {
            let call = CallId(core.next_call);
            core.next_call += 1;
            for event in [
                Event::Send { call, request },
                Event::Apply(call),
                Event::Reply(call),
                Event::Deliver(call),
            ] {
                effects.extend(core.engine.step(event));
            }
            match effects.pop() {
                Some(Effect::Delivered { answer, .. }) => Some(answer),
                other => {
                    effects.extend(other);
                    drop(core.engine.step(Event::Lose(call)));
                    None
                }
            }
        })
    }

    /// Lets an event happen that delivers nothing.
    pub(crate) fn step(&self, event: Event) {
        self.alter(|engine| engine.step(event));
    }

    /// Changes the state machine.
    pub(crate) fn alter(&self, act: impl FnOnce(&mut Engine) -> Vec<Effect>) {
        self.run(|core, effects| effects.extend(act(&mut core.engine)));
    }

    /// Looks at the state machine as it is now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Engine) -> T) -> T {
        self.run(|core, _| look(&core.engine))
    }

    /// Reads a stream, or has its reader woken when there is something to read.
    pub(crate) fn poll<T>(
        &self,
        stream: StreamId,
        context: &Context<'_>,
        read: impl FnOnce(&mut Engine, StreamId) -> Poll<T>,
    ) -> Poll<T> {
        let (read, displaced) = self.run(|core, _| {
            let read = read(&mut core.engine, stream);
            let displaced = if read.is_pending() {
                core.wakers.insert(stream, context.waker().clone())
            } else {
                core.wakers.remove(&stream)
            };
            (read, displaced)
        });
        // Not under the lock: a waker may own a task, and the task a stream of this store.
        drop(displaced);
        read
    }

    /// Closes a stream whose reader is gone. Time stands still for it: this runs in drops, also
    /// in those at the end of a runtime.
    pub(crate) fn close(&self, stream: StreamId) {
        let mut core = self.lock();
        drop(core.engine.step(Event::Close(stream)));
        let waker = core.wakers.remove(&stream);
        drop(core);
        drop(waker);
    }

    /// Lets everything happen that is due; answers with the tick to come back at, if any.
    pub(crate) fn drive(&self) -> Option<u64> {
        self.run(|core, _| {
            core.driven_until = core.engine.next_due();
            core.driven_until
        })
    }

    /// Does something at the present time, and tells everybody concerned afterwards.
    fn run<T>(&self, act: impl FnOnce(&mut Core, &mut Vec<Effect>) -> T) -> T {
        let mut core = self.lock();
        let mut effects = Vec::new();
        if let Some(clock) = &self.clock {
            let ticks = clock.tick().saturating_sub(core.engine.now());
            if ticks > 0 {
                effects = core.engine.step(Event::Advance { ticks });
            }
            core.engine.set_between_ticks(clock.is_between_ticks());
        }
        let answer = act(&mut core, &mut effects);
        let wakers: Vec<Waker> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Readable(stream) => core.wakers.remove(stream),
                Effect::Delivered { .. } => None,
            })
            .collect();
        let next = core.engine.next_due();
        let sooner = next.is_some_and(|due| core.driven_until.is_none_or(|until| due < until));
        if sooner {
            core.driven_until = next;
        }
        let facts = core.engine.take_facts();
        drop(core);
        if let Some(observer) = self.observer.get() {
            facts.into_iter().for_each(observer);
        }
        if let Some(clock) = self.clock.as_ref().filter(|_| sooner) {
            clock.nudge();
        }
        wakers.into_iter().for_each(Waker::wake);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(clock) = &self.clock {
            clock.nudge();
        }
        let core = self.core.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut core.wakers)
            .into_values()
            .for_each(Waker::wake);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.lock();
        f.debug_struct("Shared")
            .field("revision", &core.engine.revision())
            .field("tick", &core.engine.now())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
