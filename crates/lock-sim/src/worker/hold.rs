//! What callers do with locks that they have.

use std::sync::Arc;
use std::time::Duration;

use fencelock::{Guard, Release};
use lock_spi::FencingToken;

use super::caller::{Caller, Target};
use crate::check::{Invariant, Violation};
use crate::open_call::OpenCall;
use crate::record::{Answer, Asks, Phase, What};

const LONGEST_WAIT: Duration = Duration::from_secs(8);
const LONGEST_PATIENCE: Duration = Duration::from_secs(3);

impl Caller {
    /// Holds a lock for a while, looks again and again whether it does, and gives it up in one of
    /// the ways that there are.
    pub(super) async fn hold(&self, target: &Target<'_>, guard: Guard) {
        let token = guard.token();
        for _ in 0..1 + self.below(4) {
            match guard.check() {
                Ok(token) => self.believe(target, token),
                Err(lost) => {
                    self.node
                        .believers()
                        .lost(self.node.lane(), target.key, &lost);
                    return;
                }
            }
            // Here is where a process is paused, and its lock passes on.
            self.pause(self.a_while()).await;
            // Late: whether it counts is for the resource to say.
            let _refused = target.resource.touch(&self.node, token);
            if self.scene.phases.now() != Phase::Safety {
                break;
            }
        }
        match self.below(6) {
            1 => {
                if let Some(release) = self.begin_release(target.key, token) {
                    release.leave();
                }
                drop(guard);
            }
            2 => {
                let release = self.begin_release(target.key, token);
                let patience = self.up_to(LONGEST_PATIENCE);
                let result = self.node.runtime().timeout(patience, guard.release()).await;
                if let (Some(release), Ok(result)) = (release, result) {
                    release.answer(Self::released(&result));
                }
            }
            3 => {
                let patience = self.up_to(LONGEST_WAIT);
                let lost = self.node.runtime().timeout(patience, guard.lost()).await;
                if let Ok(lost) = lost {
                    self.node
                        .believers()
                        .lost(self.node.lane(), target.key, &lost);
                    if guard.check().is_ok() {
                        self.unsound(format!("{} holds what it lost: {lost}", self.node.lane()));
                    }
                    return;
                }
                self.give_back(target.key, guard).await;
            }
            4 => {
                let (key, ttl) = (Arc::clone(target.key), self.scene.plan.ttl);
                let call = self.call(Asks::Ensure { key, token });
                let at_least = self.up_to(ttl);
                match guard.ensure(at_least).await {
                    Ok(left) => call.answer(Answer::Renewed(left)),
                    Err(error) if error.lost().is_some() => call.answer(Answer::Gone),
                    Err(_) => call.answer(Answer::Failed),
                }
                self.give_back(target.key, guard).await;
            }
            _ => self.give_back(target.key, guard).await,
        }
    }

    /// Mostly short; sometimes longer than a session lives without renewal.
    fn a_while(&self) -> Duration {
        match self.below(16) {
            15 => self.scene.plan.ttl * 2,
            14 => self.scene.plan.ttl,
            _ => self.scene.plan.hold,
        }
    }

    /// A write at the very moment at which the lock was checked: nothing comes between.
    pub(super) fn believe(&self, target: &Target<'_>, token: FencingToken) {
        let key = Arc::clone(target.key);
        let what = What::Believes { key, token };
        self.node.chronicle().note(self.node.lane(), what);
        let _refused = target.resource.touch(&self.node, token);
    }

    /// Begins to give a lock back; `None` when it is known to be lost.
    pub(super) fn begin_release(&self, key: &Arc<str>, token: FencingToken) -> Option<OpenCall> {
        self.node.believers().settle(key, token);
        if !self.node.believers().remove(key, token) {
            return None;
        }
        let key = Arc::clone(key);
        Some(self.call(Asks::Release { key, token }))
    }

    pub(super) async fn give_back(&self, key: &Arc<str>, guard: Guard) {
        let release = self.begin_release(key, guard.token());
        let result = guard.release().await;
        if let Some(release) = release {
            release.answer(Self::released(&result));
        }
    }

    pub(super) fn released(result: &fencelock::Result<Release>) -> Answer {
        match result {
            Ok(Release::Released) => Answer::Released,
            Ok(Release::AlreadyGone) => Answer::AlreadyGone,
            Err(_) => Answer::Failed,
        }
    }

    pub(super) fn unsound(&self, sentence: String) {
        let at = self.node.chronicle().processes().elapsed();
        let violation = Violation::new(Invariant::Sound, at, sentence).of_lane(self.node.lane());
        self.node.chronicle().add(violation);
    }
}
