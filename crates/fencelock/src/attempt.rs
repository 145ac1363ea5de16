use std::sync::Arc;

use lock_spi::{
    AttemptId, Effect, Grant, InsertOutcome, InsertRequest, Instant, LockKey, Payload, Queue,
    WaitRequest,
};

use crate::backend::Unanswered;
use crate::holding::{Holding, Renewal};
use crate::releaser::Job;
use crate::session::Session;

/// One wish for a lock, and its compensation: dropped, it is given up, in the store as well if the
/// store may know of it.
///
/// It is registered with its session, so that a renewal does not take for a ghost what is wanted.
#[derive(Debug)]
pub(crate) struct OpenAttempt {
    session: Arc<Session>,
    key: LockKey,
    id: AttemptId,
    /// The store may have something of it.
    unsettled: bool,
    granted: bool,
}

impl OpenAttempt {
    /// Of an attempt that `session` has registered.
    pub(crate) fn new(session: Arc<Session>, key: LockKey, id: AttemptId) -> Self {
        Self {
            session,
            key,
            id,
            unsettled: false,
            granted: false,
        }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Asks the store once.
    ///
    /// Without an answer the call may be going on still. Then the attempt is not to be repeated, for
    /// two calls of one attempt side by side: it is to be dropped.
    pub(crate) async fn insert(
        &mut self,
        payload: Payload,
    ) -> Result<lock_spi::Result<InsertOutcome>, Unanswered> {
        let request = InsertRequest {
            key: self.key.clone(),
            session: self.session.id,
            attempt: self.id,
            payload,
            queue: Queue::Never,
        };
        let before = std::mem::replace(&mut self.unsettled, true);
        self.session.pass();
        let answer = self
            .session
            .backend
            .ask(self.session.timing.call_limit(), move |store| async move {
                store.try_insert(request).await
            })
            .await?;
        let leaves_nothing = match &answer {
            Ok(InsertOutcome::Ended | InsertOutcome::Held(_)) => true,
            Ok(InsertOutcome::Granted(_) | InsertOutcome::Queued(_)) => false,
            Err(error) => error.effect() == Effect::None,
        };
        if leaves_nothing {
            self.unsettled = before;
        }
        Ok(answer)
    }

    /// What to wait for before asking again.
    pub(crate) fn wait_request(&self) -> WaitRequest {
        WaitRequest {
            key: self.key.clone(),
            session: self.session.id,
            attempt: self.id,
            place: None,
        }
    }

    /// The store granted it; `None` when that came too late to be believed in.
    pub(crate) fn hold(
        mut self,
        grant: Grant,
        sent: Instant,
        renewal: Renewal,
    ) -> Option<Arc<Holding>> {
        let holding = self.session.hold(self.id, grant, sent, renewal)?;
        self.granted = true;
        Some(holding)
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        if self.granted {
            return;
        }
        self.session.unregister(self.id);
        if self.unsettled {
            self.session.hand_over(Job::Abandon {
                session: Arc::clone(&self.session),
                key: self.key.clone(),
                attempt: self.id,
            });
        }
    }
}
