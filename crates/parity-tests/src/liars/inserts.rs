//! Lies about grants: who gets one, and under which token.

use std::sync::Arc;

use lock_spi::{
    AttemptId, ErrorKind, FencingToken, Grant, InsertOutcome, InsertRequest, LockKey, LockStore,
    Queue, Result, SessionId,
};

use super::memory::PlaceTaken;
use super::sessions::refused;
use super::{Lie, Lying};

impl<S: LockStore + Clone> Lying<S> {
    pub(super) async fn insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        let (key, session, attempt) = (request.key.clone(), request.session, request.attempt);
        if self.is_closed_in_name(session) {
            return Err(refused(ErrorKind::SessionGone, "it was closed"));
        }
        let granted = self.memory().granted.contains_key(&(key.clone(), attempt));
        if granted && self.tells(Lie::RefusesRepeats) {
            return Ok(InsertOutcome::Held(None));
        }
        self.remember_attempt(session, attempt);
        self.let_through(&request).await?;
        let own = InsertRequest {
            key: self.key(&key),
            ..request
        };
        let outcome = match self.store.try_insert(own.clone()).await {
            Ok(outcome) => self.bend(own, outcome).await?,
            Err(error) => match error.kind() {
                ErrorKind::FloorViolated if self.tells(Lie::IgnoresFloors) => {
                    let token = error.floor_violation().map(|violation| violation.token);
                    InsertOutcome::Granted(made_up(&own, token.unwrap_or(FencingToken::MAX)))
                }
                ErrorKind::SessionGone if self.tells(Lie::GrantsWithoutASession) => {
                    InsertOutcome::Granted(made_up(&own, FencingToken::MAX))
                }
                _ if error.is_retryable() && self.tells(Lie::TakesSilenceForHeld) => {
                    InsertOutcome::Held(None)
                }
                _ => {
                    if error.is_retryable() && self.tells(Lie::RevivesLateInserts) {
                        self.go_on(own);
                    }
                    return Err(error);
                }
            },
        };
        self.tell_outcome(&key, session, attempt, outcome).await
    }

    fn remember_attempt(&self, session: SessionId, attempt: AttemptId) {
        let mut memory = self.memory();
        memory.attempts.entry(session).or_default().insert(attempt);
    }

    /// Makes another outcome of the store's own.
    async fn bend(&self, own: InsertRequest, outcome: InsertOutcome) -> Result<InsertOutcome> {
        match outcome {
            InsertOutcome::Held(_) if self.tells(Lie::GrantsWhatIsHeld) => {
                Ok(InsertOutcome::Granted(made_up(&own, FencingToken::MAX)))
            }
            InsertOutcome::Held(_) if self.shares(&own).await? => {
                let holder = self.store.read(&own.key).await?.holder;
                let token = holder.map_or(FencingToken::MAX, |holder| holder.token);
                Ok(InsertOutcome::Granted(made_up(&own, token)))
            }
            InsertOutcome::Ended if self.forgives(own.attempt) => {
                let attempt = AttemptId::random(&*self.runtime);
                self.store
                    .try_insert(InsertRequest { attempt, ..own })
                    .await
            }
            outcome => Ok(outcome),
        }
    }

    /// Whether whoever asks is given the grant of whoever holds the key.
    async fn shares(&self, own: &InsertRequest) -> Result<bool> {
        let lies = [Lie::SharesWithinASession, Lie::SharesAmongOneOwner];
        if !lies.into_iter().any(|lie| self.tells(lie)) {
            return Ok(false);
        }
        let Some(holder) = self.store.read(&own.key).await?.holder else {
            return Ok(false);
        };
        let owner = self.memory().sessions.get(&own.session).cloned();
        let one_owner = owner.is_some_and(|opened| opened.owner == holder.owner);
        Ok(match self.tells(Lie::SharesAmongOneOwner) {
            true => one_owner,
            false => holder.session == own.session,
        })
    }

    /// Whether an attempt that is over may try once more.
    fn forgives(&self, attempt: AttemptId) -> bool {
        let abandoned = self.memory().abandoned.contains(&attempt);
        match abandoned {
            true => self.tells(Lie::ForgetsWhatWasAbandoned),
            false => self.tells(Lie::GrantsEndedAttempts),
        }
    }

    /// Sends an insert that had no answer again, under a new name, until it has one.
    fn go_on(&self, own: InsertRequest) {
        let (store, runtime) = (self.store.clone(), Arc::clone(&self.runtime));
        let attempt = AttemptId::random(&*self.runtime);
        let again = InsertRequest { attempt, ..own };
        self.runtime.spawn(Box::pin(async move {
            let retryable = |error: lock_spi::Error| error.is_retryable();
            while store.try_insert(again.clone()).await.is_err_and(retryable) {
                runtime.sleep(std::time::Duration::from_millis(100)).await;
            }
        }));
    }

    async fn tell_outcome(
        &self,
        key: &LockKey,
        session: SessionId,
        attempt: AttemptId,
        outcome: InsertOutcome,
    ) -> Result<InsertOutcome> {
        let own = match outcome {
            InsertOutcome::Granted(grant) => grant,
            InsertOutcome::Held(holder) => {
                let told = holder.map(|holder| self.told_holder(key, holder));
                return Ok(InsertOutcome::Held(told));
            }
            InsertOutcome::Queued(place) => {
                let taken = PlaceTaken {
                    key: key.clone(),
                    session,
                    attempt,
                };
                let mut memory = self.memory();
                if !memory.places.contains(&taken) {
                    memory.places.push(taken);
                }
                return Ok(InsertOutcome::Queued(place));
            }
            InsertOutcome::Ended => return Ok(InsertOutcome::Ended),
        };
        let token = own.token;
        let before = {
            let mut memory = self.memory();
            memory.places.retain(|place| place.attempt != attempt);
            memory.granted_to.insert(token, session);
            memory.granted.insert((key.clone(), attempt), token)
        };
        if let Some(told) = self.other_name(key, token, before).await? {
            self.rename(key, token, told);
        }
        let remaining = match self.tells(Lie::GrantsTheWholeTtl) {
            true => Some(self.ttl(session).as_duration()),
            false => own.remaining,
        };
        Ok(InsertOutcome::Granted(Grant {
            key: key.clone(),
            token: self.told_token(key, token),
            session: own.session,
            remaining,
        }))
    }

    /// The token that a grant is told by, if not its own.
    async fn other_name(
        &self,
        key: &LockKey,
        own: FencingToken,
        before: Option<FencingToken>,
    ) -> Result<Option<FencingToken>> {
        if self.tells(Lie::StartsTokensAnew) {
            return Ok(Some(FencingToken::new(1)?));
        }
        if self.tells(Lie::IgnoresTerms) {
            return Ok(Some(FencingToken::new(own.counter())?));
        }
        if self.tells(Lie::IgnoresFloors) || self.tells(Lie::GrantsAtNewFloors) {
            return Ok(self.store.read(&self.key(key)).await?.floor);
        }
        if self.tells(Lie::GrantsRepeatsAnew) && before == Some(own) {
            let told = self.told_token(key, own);
            return Ok(Some(FencingToken::new(told.as_u64() + 1)?));
        }
        Ok(None)
    }

    /// Clears the way for whoever is to pass a queue.
    async fn let_through(&self, request: &InsertRequest) -> Result<()> {
        let passes = match request.queue {
            Queue::Never => self.tells(Lie::LetsOthersBarge),
            Queue::Join => self.tells(Lie::ServesWhoeverAsks),
        };
        if passes && self.is_free(&request.key).await? {
            self.evict_all_but(&request.key, request.attempt).await?;
        }
        Ok(())
    }
}

/// A grant that no store stands behind.
fn made_up(own: &InsertRequest, token: FencingToken) -> Grant {
    Grant {
        key: own.key.clone(),
        token,
        session: own.session,
        remaining: None,
    }
}
