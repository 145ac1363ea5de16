//! How callers come to locks.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use fencelock::{Attempt, ErrorKind, Guard};
use lock_spi::Payload;

use super::caller::{Caller, Target};
use crate::open_call::OpenCall;
use crate::plan::Operation;
use crate::record::{Answer, Asks, Phase, What};

const LONGEST_WAIT: Duration = Duration::from_secs(8);
const LONGEST_PATIENCE: Duration = Duration::from_secs(3);

impl Caller {
    pub(super) fn call(&self, asks: Asks) -> OpenCall {
        OpenCall::begin(self.node.chronicle(), self.node.lane(), asks)
    }

    /// Does something of the plan.
    pub(super) async fn operate(&self) {
        if let Some(grant) = self.scene.mailbox.take() {
            return self.adopt(grant).await;
        }
        let Some(target) = self.target(self.below(self.scene.plan.keys.len())) else {
            return;
        };
        match self.scene.plan.mix.choose(&**self.node.runtime()) {
            Operation::Acquire => self.acquire(target).await,
            Operation::Try => self.try_once(target).await,
            Operation::CallOff => self.call_off(target).await,
            Operation::AcquireAll => self.acquire_all().await,
            Operation::Campaign => self.campaign(target).await,
            Operation::HandOver => self.hand_over(target).await,
        }
    }

    fn asks(target: &Target<'_>) -> Asks {
        Asks::Acquire {
            key: Arc::clone(target.key),
        }
    }

    async fn acquire(&self, target: Target<'_>) {
        let call = self.call(Self::asks(&target));
        let wait = self.up_to(LONGEST_WAIT);
        let acquire = self.node.locks().acquire(&**target.key);
        let result = acquire.wait_at_most(wait).await;
        if let Some(guard) = self.answered(call, result) {
            self.hold(&target, guard).await;
        }
    }

    async fn try_once(&self, target: Target<'_>) {
        let key = Arc::clone(target.key);
        let call = self.call(Asks::Try { key });
        match self.node.locks().try_acquire(&**target.key).await {
            Ok(Attempt::Held(_)) => call.answer(Answer::Held),
            Ok(Attempt::Acquired(guard)) => {
                if let Some(guard) = self.answered(call, Ok(guard)) {
                    self.hold(&target, guard).await;
                }
            }
            Err(error) => drop(self.answered(call, Err(error))),
        }
    }

    async fn call_off(&self, target: Target<'_>) {
        let call = self.call(Self::asks(&target));
        let patience = self.up_to(LONGEST_PATIENCE);
        let acquire = self.node.locks().acquire(&**target.key).into_future();
        match self.node.runtime().timeout(patience, acquire).await {
            Ok(result) => {
                if let Some(guard) = self.answered(call, result) {
                    self.hold(&target, guard).await;
                }
            }
            Err(_) => drop(call),
        }
    }

    async fn acquire_all(&self) {
        let keys = &self.scene.plan.keys;
        let calls: Vec<OpenCall> = keys
            .iter()
            .map(|key| {
                let key = Arc::clone(key);
                self.call(Asks::Acquire { key })
            })
            .collect();
        let wait = self.up_to(LONGEST_WAIT);
        let all = self.node.locks().acquire_all(keys.iter().map(|key| &**key));
        match all.wait_at_most(wait).await {
            Ok(guards) => {
                for ((call, key), resource) in
                    calls.into_iter().zip(keys).zip(&self.scene.resources)
                {
                    let Some(guard) = guards.get(key) else {
                        continue;
                    };
                    self.told(call, key, guard);
                    if let Ok(token) = guard.check() {
                        self.believe(&Target { key, resource }, token);
                    }
                }
                self.pause(self.scene.plan.hold).await;
                let mut releases = Vec::new();
                for key in keys {
                    if let Some(guard) = guards.get(key) {
                        releases.extend(self.begin_release(key, guard.token()));
                    }
                }
                drop(guards.release().await);
                // Which of them had ended by itself is not told.
                releases.into_iter().for_each(OpenCall::leave);
            }
            Err(error) => {
                let answer = self.failure(&error);
                // What it had got of them is on its way back, and until then it is still its own.
                let (runtime, ttl) = (self.node.runtime(), self.scene.plan.ttl);
                let sleep = runtime.sleep(ttl);
                runtime.spawn(Box::pin(async move {
                    sleep.await;
                    calls.into_iter().for_each(|call| call.answer(answer));
                }));
            }
        }
    }

    async fn campaign(&self, target: Target<'_>) {
        let call = self.call(Self::asks(&target));
        let Ok(election) = self.node.locks().election(&**target.key) else {
            return call.answer(Answer::Failed);
        };
        let payload = Payload::default();
        let patience = self.up_to(LONGEST_WAIT);
        let campaign = election.campaign(payload);
        match self.node.runtime().timeout(patience, campaign).await {
            Ok(Ok(leadership)) => {
                let (key, token) = (target.key, leadership.token());
                let believers = self.node.believers();
                believers.add(self.node.lane(), key, leadership.held());
                call.answer(Answer::Granted(token));
                if let Ok(token) = leadership.check() {
                    self.believe(&target, token);
                }
                self.pause(self.scene.plan.hold).await;
                let release = self.begin_release(key, token);
                let result = leadership.resign().await;
                if let Some(release) = release {
                    release.answer(Self::released(&result));
                }
            }
            Ok(Err(error)) => call.answer(self.failure(&error)),
            Err(_) => drop(call),
        }
    }

    async fn hand_over(&self, target: Target<'_>) {
        let call = self.call(Self::asks(&target));
        let wait = self.up_to(LONGEST_WAIT);
        let acquire = self.node.locks().acquire(&**target.key);
        let result = acquire.wait_at_most(wait).transferable().await;
        let Some(guard) = self.answered(call, result) else {
            return;
        };
        self.pause(self.scene.plan.hold).await;
        let token = guard.token();
        match guard.into_grant() {
            Ok(grant) => {
                self.node.believers().remove(target.key, token);
                self.scene.mailbox.put(grant);
            }
            Err(kept) => self.hold(&target, kept.into_guard()).await,
        }
    }

    async fn adopt(&self, grant: fencelock::Grant) {
        let keys = &self.scene.plan.keys;
        let Some(index) = keys.iter().position(|key| **key == *grant.key().as_str()) else {
            return;
        };
        let Some(target) = self.target(index) else {
            return;
        };
        let call = self.call(Asks::Adopt {
            key: Arc::clone(target.key),
            token: grant.token(),
        });
        let result = self.node.locks().adopt(grant).await;
        if let Some(guard) = self.answered(call, result) {
            self.hold(&target, guard).await;
        }
    }

    /// Once faults are healed: takes a lock, and gives it back at once.
    pub(super) async fn take_once(&self, index: usize) {
        let Some(target) = self.target(index) else {
            return;
        };
        let call = self.call(Self::asks(&target));
        let acquire = self.node.locks().acquire(&**target.key);
        let result = acquire.wait_at_most(self.scene.hand_over).await;
        if let Some(guard) = self.answered(call, result) {
            self.give_back(target.key, guard).await;
        }
    }

    /// Writes an answer down; a guard is in use from then on.
    fn answered(&self, call: OpenCall, result: fencelock::Result<Guard>) -> Option<Guard> {
        match result {
            Ok(guard) => {
                let keys = &self.scene.plan.keys;
                let key = keys.iter().find(|key| ***key == *guard.key().as_str())?;
                self.told(call, key, &guard);
                Some(guard)
            }
            Err(error) => {
                call.answer(self.failure(&error));
                None
            }
        }
    }

    fn told(&self, call: OpenCall, key: &Arc<str>, guard: &Guard) {
        let believers = self.node.believers();
        believers.add(self.node.lane(), key, guard.held());
        call.answer(Answer::Granted(guard.token()));
    }

    /// What a failure means; those that no run should meet are violations.
    fn failure(&self, error: &fencelock::Error) -> Answer {
        match error.kind() {
            ErrorKind::TimedOut => Answer::Held,
            ErrorKind::Lost => Answer::Gone,
            ErrorKind::Unavailable
            | ErrorKind::NotLeader
            | ErrorKind::Exhausted
            | ErrorKind::FloorViolated => {
                if self.scene.phases.now() == Phase::Liveness {
                    let words = format!("fails: {error:?}");
                    self.node
                        .chronicle()
                        .note(self.node.lane(), What::Note(words));
                }
                Answer::Failed
            }
            _ => {
                self.unsound(format!("{} is answered {error:?}", self.node.lane()));
                Answer::Failed
            }
        }
    }
}
