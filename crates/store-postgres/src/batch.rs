//! Calls that come while others of their kind are under way go together, in one transaction.
//!
//! Who comes while nobody is under way goes at once, and by itself if nobody came at the same moment.
//! Whatever comes meanwhile sets out when that was answered. A call that takes more than a batch
//! does, or that no batch takes along in time, goes by itself as well.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use lock_spi::{Effect, Elapsed, Error, Instant, LockKey, Namespace, Result, TaskLost};
use tokio::sync::oneshot;

use crate::client::{Answer, Call};
use crate::core::Core;
use crate::error::{task_lost, timed_out};

/// So many calls and batches of one kind are under way at once; with more, batches are smaller.
const LANES: usize = 1;
/// The most calls in one batch.
const MOST: usize = 128;
/// How long a call waits for a batch that takes it along.
const PATIENCE: Duration = Duration::from_millis(50);

/// A call that can go together with others of its kind.
pub(crate) trait Batched: Clone + Debug + Send + Sync + 'static {
    type Reply: Debug + Send + 'static;

    /// A batch has one call for each key.
    fn key(&self) -> &LockKey;

    fn batches(core: &Core) -> &Batches<Self>;

    fn alone<'a>(&'a self, namespace: &'a Namespace) -> impl Call<Reply = Self::Reply> + 'a;

    /// Answers by the places of the calls. One without an answer has done nothing and has to go by
    /// itself.
    fn together<'a>(
        calls: &'a [Self],
        namespace: &'a Namespace,
    ) -> impl Call<Reply = BTreeMap<usize, Self::Reply>> + 'a;
}

/// The calls of one kind that wait for the next batch.
#[derive(Debug)]
pub(crate) struct Batches<B: Batched>(Mutex<State<B>>);

#[derive(Debug)]
struct State<B: Batched> {
    under_way: usize,
    waiting: BTreeMap<LockKey, Waiting<B>>,
    tickets: u64,
}

#[derive(Debug)]
struct Waiting<B: Batched> {
    call: B,
    ticket: u64,
    deadline: Instant,
    told: oneshot::Sender<Told<B::Reply>>,
}

/// What a batch tells one of its calls.
#[derive(Debug)]
enum Told<R> {
    Answered(Answer<R>),
    /// Of a batch that was sent twice, the first copy may have done it.
    GoAlone {
        copy_lost: bool,
    },
    Failed(Error),
}

impl<B: Batched> Batches<B> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            under_way: 0,
            waiting: BTreeMap::new(),
            tickets: 0,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the call may set out; otherwise it has to [wait](Self::wait).
    fn admits(&self) -> bool {
        let mut state = self.state();
        let admits = state.under_way < LANES;
        if admits {
            state.under_way += 1;
        }
        admits
    }

    fn is_empty(&self) -> bool {
        self.state().waiting.is_empty()
    }

    /// Has a call wait for the next batch; `None` if one for the same key waits already.
    fn wait(
        &self,
        call: &B,
        deadline: Instant,
    ) -> Option<(u64, oneshot::Receiver<Told<B::Reply>>)> {
        let mut state = self.state();
        state.tickets += 1;
        let ticket = state.tickets;
        let Entry::Vacant(place) = state.waiting.entry(call.key().clone()) else {
            return None;
        };
        let (told, receiver) = oneshot::channel();
        place.insert(Waiting {
            call: call.clone(),
            ticket,
            deadline,
            told,
        });
        Some((ticket, receiver))
    }

    /// Takes a call back; `false` when it has set out.
    fn withdraw(&self, key: &LockKey, ticket: u64) -> bool {
        let mut state = self.state();
        let waits = state.waiting.get(key);
        let waits = waits.is_some_and(|waiting| waiting.ticket == ticket);
        if waits {
            state.waiting.remove(key);
        }
        waits
    }

    /// The next batch.
    fn take(&self) -> Vec<Waiting<B>> {
        let mut state = self.state();
        let mut batch = Vec::new();
        while batch.len() < MOST
            && let Some((_, waiting)) = state.waiting.pop_first()
        {
            batch.push(waiting);
        }
        batch
    }

    /// Nobody sets out any more: those who wait learn it by being dropped.
    fn give_up(&self) {
        let mut state = self.state();
        state.under_way = state.under_way.saturating_sub(1);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }

    /// Somebody has arrived; `true` when it is the turn of those who wait.
    fn leave(&self) -> bool {
        let mut state = self.state();
        let others = !state.waiting.is_empty();
        if !others {
            state.under_way = state.under_way.saturating_sub(1);
        }
        others
    }
}

/// The right to be under way. Whoever waits sets out when it is dropped.
struct Lane<B: Batched> {
    core: Arc<Core>,
    /// It was given to a task that has not begun.
    handed_on: bool,
    of: PhantomData<B>,
}

impl<B: Batched> Lane<B> {
    fn of(core: &Arc<Core>) -> Self {
        Self {
            core: Arc::clone(core),
            handed_on: false,
            of: PhantomData,
        }
    }
}

impl<B: Batched> Drop for Lane<B> {
    fn drop(&mut self) {
        if self.handed_on {
            // The runtime has ended and runs no task any more, so another would fare no better.
            return B::batches(&self.core).give_up();
        }
        if B::batches(&self.core).leave() {
            let mut lane = Self::of(&self.core);
            lane.handed_on = true;
            self.core.runtime.spawn(Box::pin(send(lane)));
        }
    }
}

/// Sends those who wait, as one batch.
async fn send<B: Batched>(mut lane: Lane<B>) {
    lane.handed_on = false;
    let core = &*lane.core;
    let batch = B::batches(core).take();
    let latest = batch.iter().map(|waiting| waiting.deadline).max();
    let limit = latest.map_or(Duration::ZERO, |latest| {
        latest.saturating_since(core.runtime.now())
    });
    let (calls, told): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|waiting| (waiting.call, waiting.told))
        .unzip();
    let answers = ask(core, limit, &calls).await;
    for (told, answer) in told.into_iter().zip(answers) {
        // Whoever does not listen any more was out of time.
        drop(told.send(answer));
    }
}

/// Lets everybody go first who can go on.
async fn after_the_others() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// One answer for each call.
async fn ask<B: Batched>(core: &Core, limit: Duration, calls: &[B]) -> Vec<Told<B::Reply>> {
    match calls {
        // All of them have gone by themselves meanwhile.
        [] => return Vec::new(),
        [only] => {
            let answer = core.call(limit, &only.alone(core.namespace())).await;
            return vec![answer.map_or_else(Told::Failed, Told::Answered)];
        }
        _ => {}
    }
    let answer = core
        .call(limit, &B::together(calls, core.namespace()))
        .await;
    match answer {
        Ok(Answer {
            mut reply,
            sent,
            copy_lost,
        }) => {
            let told = |place| match reply.remove(&place) {
                Some(reply) => Told::Answered(Answer {
                    reply,
                    sent,
                    copy_lost,
                }),
                None => Told::GoAlone { copy_lost },
            };
            (0..calls.len()).map(told).collect()
        }
        // One of them may be to blame for all.
        Err(error) if error.effect() == Effect::None => {
            let told = calls.iter().map(|_| Told::GoAlone { copy_lost: false });
            told.collect()
        }
        Err(error) => {
            let error = Arc::new(error);
            let told = calls.iter().map(|_| Told::Failed(of_batch(&error)));
            told.collect()
        }
    }
}

fn of_batch(error: &Arc<Error>) -> Error {
    let message = "the batch that the call went with failed";
    Error::new(error.kind(), error.effect(), message).with_source(Arc::clone(error))
}

impl Core {
    /// Makes one call, together with others if that saves anything.
    pub(crate) async fn call_batched<B: Batched>(
        self: &Arc<Self>,
        limit: Duration,
        call: &B,
    ) -> Result<Answer<B::Reply>> {
        let runtime = &*self.runtime;
        let deadline = runtime.now() + limit;
        let alone = call.alone(self.namespace());
        let batches = B::batches(self);
        let lane = batches.admits().then(|| Lane::<B>::of(self));
        if lane.is_some() {
            // Those whom one batch has answered ask for the next thing at the same moment.
            after_the_others().await;
            if batches.is_empty() {
                return self.call(limit, &alone).await;
            }
        }
        let waits = batches.wait(call, deadline);
        drop(lane);
        let Some((ticket, mut told)) = waits else {
            return self.call(limit, &alone).await;
        };
        let left = || deadline.saturating_since(runtime.now());
        let told = match runtime.timeout(PATIENCE.min(limit), &mut told).await {
            Ok(told) => told,
            Err(Elapsed) if batches.withdraw(call.key(), ticket) => {
                Ok(Told::GoAlone { copy_lost: false })
            }
            Err(Elapsed) => {
                let late = runtime.timeout(left(), told).await;
                late.map_err(|Elapsed| timed_out(Effect::Unknown))?
            }
        };
        match told {
            Ok(Told::Answered(answer)) => Ok(answer),
            Ok(Told::Failed(error)) => Err(error),
            Ok(Told::GoAlone { copy_lost }) => {
                let answer = self.call(left(), &alone).await;
                let mut answer = answer.map_err(|error| match copy_lost {
                    true => error.with_effect(Effect::Unknown),
                    false => error,
                })?;
                answer.copy_lost |= copy_lost;
                Ok(answer)
            }
            Err(_dropped) => Err(task_lost(TaskLost)),
        }
    }
}
