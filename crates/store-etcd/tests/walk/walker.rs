//! One process: it takes locks, keeps them, gives them back, gives up, and comes again.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use etcd_kv::MetadataStore;
use lock_spi::{
    AttemptId, Error, ErrorKind, Grant, InsertOutcome, LockStore, Queue, Runtime, SessionId,
    WaitRequest,
};
use sim_runtime::{Faulty, Weather};

use super::Plan;
use super::stage::Stage;
use super::told::Told;
use crate::common::{Node, TTL, key};

/// So often is a lock asked for before it is given up.
const TRIES: usize = 6;
const KEYS: [&str; 2] = ["a", "b"];

pub(crate) struct Walker<M> {
    pub(crate) stage: Stage<M>,
    pub(crate) node: Node<Faulty<M>>,
    pub(crate) told: Arc<Mutex<Told>>,
    pub(crate) plan: Plan,
    pub(crate) session: SessionId,
}

impl<M: MetadataStore + Clone> Walker<M> {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.node.runtime
    }

    fn chance(&self, one_in: u64) -> bool {
        self.runtime().random().is_multiple_of(one_in)
    }

    async fn pause(&self) {
        let pause = self.runtime().jitter(self.plan.pause);
        self.runtime().sleep(pause).await;
    }

    /// What cannot be tried again is wrong in a walk.
    fn judge(&self, what: &str, error: &Error) {
        if !error.is_retryable() {
            let complaint = format!("{what}: {error}");
            self.told().complaints.push(complaint);
        }
    }

    /// Through the storm.
    pub(crate) async fn walk(mut self) -> Self {
        self.node.kv.faults().set_weather(self.plan.weather.clone());
        self.reopen().await;
        for _ in 0..self.plan.rounds {
            let text = KEYS[usize::from(self.chance(2))];
            let attempt = self.node.attempt();
            match self.acquire(text, attempt).await {
                Some(grant) => self.hold(&grant, attempt).await,
                None => self.give_up(text, attempt).await,
            }
            if self.chance(8) {
                self.close().await;
                self.reopen().await;
            }
        }
        self
    }

    async fn reopen(&mut self) {
        loop {
            self.session = SessionId::random(&**self.runtime());
            let asked = self.runtime().now();
            match self.node.open(self.session).await {
                Ok(lease) => {
                    self.told().believe(self.session, asked + lease.remaining);
                    return;
                }
                Err(error) => self.judge("open", &error),
            }
            self.pause().await;
        }
    }

    pub(crate) async fn close(&self) {
        self.told().ended.insert(self.session);
        while let Err(error) = self.node.store.close_session(self.session).await {
            self.judge("close", &error);
            self.pause().await;
        }
    }

    async fn acquire(&self, text: &str, attempt: AttemptId) -> Option<Grant> {
        for _ in 0..TRIES {
            let queue = if self.chance(3) {
                Queue::Never
            } else {
                Queue::Join
            };
            let insert = self.node.insert(self.session, text, attempt, queue);
            if self.chance(8) {
                // Dropped on the way; it runs to its end all the same.
                let limit = self.runtime().jitter(Duration::from_millis(80));
                drop(self.runtime().timeout(limit, insert).await);
                if self.chance(2) {
                    return None;
                }
                continue;
            }
            match insert.await {
                Ok(InsertOutcome::Granted(grant)) => {
                    self.told().granted.insert(grant.token, attempt);
                    return Some(grant);
                }
                Ok(InsertOutcome::Ended) => return None,
                Ok(InsertOutcome::Held(_) | InsertOutcome::Queued(_)) => {
                    self.wait(text, attempt).await;
                }
                Err(error) if error.kind() == ErrorKind::SessionGone => return None,
                Err(error) => {
                    self.judge("insert", &error);
                    if self.chance(4) {
                        return None;
                    }
                    self.pause().await;
                }
            }
        }
        None
    }

    /// For a hint, or for a while.
    async fn wait(&self, text: &str, attempt: AttemptId) {
        let request = WaitRequest {
            key: key(text),
            session: self.session,
            attempt,
            place: None,
        };
        let hint = self.node.store.await_release(request);
        let limit = self.runtime().jitter(self.plan.pause * 2);
        // A hint that fails is none.
        drop(self.runtime().timeout(limit, hint).await);
    }

    async fn hold(&mut self, grant: &Grant, attempt: AttemptId) {
        self.pause().await;
        if self.plan.oversleeps && self.chance(20) {
            self.runtime().sleep(TTL + Duration::from_secs(3)).await;
        }
        match self.runtime().random() % 4 {
            0 => self.extend(grant).await,
            1 | 2 => self.keep(grant, attempt).await,
            _ => {}
        }
        let revision = self.stage.revision().await;
        self.told().let_go.insert(attempt, revision);
        if self.chance(8) {
            // Its grant goes with the session.
            self.close().await;
            self.reopen().await;
        }
        let (key, token) = (&grant.key, grant.token);
        while let Err(error) = self.node.store.delete_if_owner(key, token).await {
            self.judge("release", &error);
            self.pause().await;
        }
        let revision = self.stage.revision().await;
        self.told().gone.push((token, revision));
        self.told().over.insert(attempt, revision);
        self.check_session().await;
    }

    async fn keep(&self, grant: &Grant, attempt: AttemptId) {
        let before = self.stage.revision().await;
        let asked = self.runtime().now();
        let kept = self.node.keep(self.session, &[grant], &[attempt]).await;
        let after = self.stage.revision().await;
        let mut told = self.told();
        match kept {
            Ok(Some(kept)) => {
                told.believe(self.session, asked + kept.remaining);
                if kept.gone.is_empty() {
                    told.stood.push((grant.token, before));
                } else {
                    told.gone.push((grant.token, after));
                }
            }
            Ok(None) => told.gone.push((grant.token, after)),
            Err(error) => {
                drop(told);
                self.judge("keep", &error);
            }
        }
    }

    async fn extend(&self, grant: &Grant) {
        let before = self.stage.revision().await;
        let extended = self.node.store.extend(&grant.key, grant.token).await;
        let after = self.stage.revision().await;
        match extended {
            Ok(Some(_)) => self.told().stood.push((grant.token, before)),
            Ok(None) => self.told().gone.push((grant.token, after)),
            Err(error) => self.judge("extend", &error),
        }
    }

    async fn give_up(&mut self, text: &str, attempt: AttemptId) {
        let revision = self.stage.revision().await;
        self.told().let_go.insert(attempt, revision);
        let key = key(text);
        while let Err(error) = self.node.store.abandon(&key, self.session, attempt).await {
            self.judge("abandon", &error);
            self.pause().await;
        }
        let revision = self.stage.revision().await;
        self.told().over.insert(attempt, revision);
        self.check_session().await;
    }

    /// A renewal in which nothing is accounted for; a session that is gone makes way for another.
    async fn check_session(&mut self) {
        let asked = self.runtime().now();
        match self.node.keep(self.session, &[], &[]).await {
            Ok(Some(kept)) => self.told().believe(self.session, asked + kept.remaining),
            Ok(None) => self.reopen().await,
            Err(error) => self.judge("keep", &error),
        }
    }

    /// After the storm: a renewal that succeeds.
    pub(crate) async fn settle(&mut self) {
        self.node.kv.faults().set_weather(Weather::calm());
        loop {
            match self.node.keep(self.session, &[], &[]).await {
                Ok(Some(_)) => return,
                Ok(None) => self.reopen().await,
                Err(error) => self.judge("keep", &error),
            }
            self.pause().await;
        }
    }

    /// Takes each lock once more, in the calm, and gives it back.
    pub(crate) async fn take_all(&mut self) {
        for text in KEYS {
            loop {
                let attempt = self.node.attempt();
                if let Some(grant) = self.acquire(text, attempt).await {
                    self.hold(&grant, attempt).await;
                    break;
                }
                self.give_up(text, attempt).await;
            }
        }
    }
}
