//! Taking a lock: `try_insert`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{
    AttemptId, Effect, Error, FencingToken, Grant, InsertOutcome, InsertRequest, Instant, LockKey,
    Namespace, Result,
};

use crate::batch::{Batched, Batches};
use crate::calls::{Insert, InsertMany, InsertReply, Inserted};
use crate::client::Call;
use crate::core::{Core, unconfirmed};
use crate::error::{not_now, session_gone};
use crate::open::recovering;
use crate::session::{AtWork, Session};

/// So often is asked again at once.
const ROUNDS: usize = 4;

pub(crate) async fn try_insert(core: Arc<Core>, request: InsertRequest) -> Result<InsertOutcome> {
    let session = core.session(request.session).await?;
    let session = session.ok_or_else(gone)?;
    let Some(_at_work) = AtWork::begin(&session, request.attempt, &request.key) else {
        return Ok(InsertOutcome::Ended);
    };
    let mut insertion = Insertion {
        core: &core,
        session: &session,
        request: &request,
        uncertain: false,
    };
    let outcome = insertion.run().await;
    outcome.map_err(|error| match insertion.uncertain {
        true => unconfirmed(error),
        false => error,
    })
}

fn gone() -> Error {
    session_gone("the session is closed or has expired")
}

impl Batched for InsertRequest {
    type Reply = InsertReply;

    fn key(&self) -> &LockKey {
        &self.key
    }

    fn batches(core: &Core) -> &Batches<Self> {
        &core.inserts
    }

    fn alone<'a>(&'a self, namespace: &'a Namespace) -> impl Call<Reply = InsertReply> + 'a {
        Insert {
            namespace,
            request: self,
        }
    }

    fn together<'a>(
        requests: &'a [Self],
        namespace: &'a Namespace,
    ) -> impl Call<Reply = BTreeMap<usize, InsertReply>> + 'a {
        InsertMany {
            namespace,
            requests,
        }
    }
}

struct Insertion<'a> {
    core: &'a Arc<Core>,
    session: &'a Session,
    request: &'a InsertRequest,
    /// Something of this call may have taken hold and was not accounted for.
    uncertain: bool,
}

impl Insertion<'_> {
    const fn attempt(&self) -> AttemptId {
        self.request.attempt
    }

    async fn run(&mut self) -> Result<InsertOutcome> {
        for _ in 0..ROUNDS {
            let Some((inserted, sent)) = self.ask().await? else {
                return Ok(InsertOutcome::Ended);
            };
            match inserted {
                Inserted::Granted {
                    token,
                    remaining,
                    lifted,
                } => {
                    if lifted {
                        self.core.tell_lifted(&self.request.key, token);
                    }
                    if let Some(outcome) = self.granted(token, remaining, sent).await? {
                        return Ok(outcome);
                    }
                }
                Inserted::Queued(place) => {
                    self.refused(true, None);
                    return Ok(InsertOutcome::Queued(place));
                }
                Inserted::Held(holder) => {
                    self.refused(false, holder.as_ref().map(|holder| holder.token));
                    return Ok(InsertOutcome::Held(holder));
                }
                Inserted::Ended => {
                    let InsertRequest { key, attempt, .. } = self.request;
                    self.core.sessions.end(self.session, *attempt, key);
                    return Ok(InsertOutcome::Ended);
                }
                Inserted::SessionGone => {
                    self.core.sessions.closed(self.session.id);
                    return Err(gone());
                }
                Inserted::Closed => return Err(recovering()),
                Inserted::Again => {}
            }
        }
        Err(not_now("others kept getting in between"))
    }

    /// Sends one request; `None` when the attempt has ended, and nothing was sent.
    async fn ask(&mut self) -> Result<Option<(Inserted, Instant)>> {
        let (core, attempt) = (self.core, self.attempt());
        if !self
            .session
            .with_attempts(|attempts| attempts.send(attempt))
        {
            return Ok(None);
        }
        let answered = || {
            self.session
                .with_attempts(|attempts| attempts.answered(attempt))
        };
        match core.call_batched(self.session.limit, self.request).await {
            Ok(answer) => {
                match answer.copy_lost {
                    true => self.uncertain = true,
                    false => answered(),
                }
                core.wake(answer.reply.wake);
                Ok(Some((answer.reply.inserted, answer.sent)))
            }
            Err(error) => {
                if error.effect() == Effect::None {
                    answered();
                }
                Err(error)
            }
        }
    }

    fn refused(&self, has_place: bool, by: Option<FencingToken>) {
        let attempt = self.attempt();
        self.session
            .with_attempts(|attempts| attempts.refused(attempt, has_place, by));
    }

    /// A grant, unless the attempt was given up meanwhile; `None`: it has to be asked for again.
    async fn granted(
        &mut self,
        token: FencingToken,
        remaining: Duration,
        sent: Instant,
    ) -> Result<Option<InsertOutcome>> {
        let (core, key) = (self.core, &self.request.key);
        let noted = core.sessions.granted(self.session, self.attempt(), token);
        if !noted || remaining.is_zero() {
            self.uncertain = true;
            let attempt = self.attempt();
            self.session
                .with_attempts(|attempts| attempts.give_up(attempt, key));
            core.end_attempt(self.session, key, attempt).await?;
            return Ok(Some(InsertOutcome::Ended));
        }
        let until = self.session.until(sent, remaining);
        let left = until.saturating_since(core.runtime.now());
        if left.is_zero() {
            // So slow was the answer; whether the session was renewed meanwhile the next one says.
            self.uncertain = true;
            return Ok(None);
        }
        Ok(Some(InsertOutcome::Granted(Grant {
            key: key.clone(),
            token,
            session: self.session.id,
            remaining: Some(left),
        })))
    }
}
