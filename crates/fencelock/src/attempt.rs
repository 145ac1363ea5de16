use std::sync::Arc;

use lock_spi::{
    AttemptId, Effect, Grant, InsertOutcome, InsertRequest, Instant, LockKey, Payload, Place,
    WaitRequest,
};

use crate::backend::Unanswered;
use crate::holding::{Holding, Renewal};
use crate::line::Occupied;
use crate::releaser::Job;
use crate::session::Session;

/// One attempt at a lock, and its compensation: dropped, it is given up, in the store as well if the
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
    /// What the lock would show that the store may have granted without anybody knowing.
    doubtful: Option<Payload>,
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
            doubtful: None,
            granted: false,
        }
    }

    pub(crate) fn id(&self) -> AttemptId {
        self.id
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Whether it may have been granted without anybody knowing.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful.is_some()
    }

    /// Whether its next answer is good for a wish that shows this.
    pub(crate) fn is_good_for(&self, payload: &Payload) -> bool {
        self.doubtful.as_ref().is_none_or(|sent| sent == payload)
    }

    /// Asks the store once.
    ///
    /// Without an answer the call may be going on still. Then the attempt is not to be repeated, for
    /// two calls of one attempt side by side: it is to be dropped.
    pub(crate) async fn insert(
        &mut self,
        request: InsertRequest,
    ) -> Result<lock_spi::Result<InsertOutcome>, Unanswered> {
        let was_unsettled = std::mem::replace(&mut self.unsettled, true);
        let was_doubtful = self.doubtful.replace(request.payload.clone());
        self.session.pass();
        let answer = self
            .session
            .backend
            .ask(self.session.timing.call_limit(), move |store| async move {
                store.try_insert(request).await
            })
            .await?;
        match &answer {
            Ok(InsertOutcome::Granted(_)) => {}
            Ok(InsertOutcome::Queued(_)) => self.doubtful = None,
            Err(error) if error.effect() == Effect::Unknown => {}
            Ok(InsertOutcome::Ended | InsertOutcome::Held(_)) | Err(_) => {
                self.unsettled = was_unsettled;
                self.doubtful = was_doubtful;
            }
        }
        Ok(answer)
    }

    /// What to wait for before asking again.
    pub(crate) fn wait_request(&self, place: Option<Place>) -> WaitRequest {
        WaitRequest {
            key: self.key.clone(),
            session: self.session.id,
            attempt: self.id,
            place,
        }
    }

    /// The store granted it; `None` when that came too late to be believed in.
    pub(crate) fn hold(
        mut self,
        grant: Grant,
        sent: Instant,
        renewal: Renewal,
        occupied: Occupied,
    ) -> Option<Arc<Holding>> {
        let holding = self.session.hold(self.id, grant, sent, renewal, occupied)?;
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
