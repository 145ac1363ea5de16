//! How the reference store grants, refuses and queues.

use std::time::Duration;

use lock_spi::{
    AttemptId, ErrorKind, FencingToken, InsertOutcome, InsertRequest, Instant, LockKey, Place,
    Queue, Result, SessionId,
};

use crate::flaws::Flaw;
use crate::state::{Lock, Moment, State, Ticket, refused};

/// How long the first in line may leave a free key alone.
pub(crate) const CLAIM: Duration = Duration::from_secs(12);

impl State {
    pub(crate) fn try_insert(
        &mut self,
        request: InsertRequest,
        at: Moment,
    ) -> Result<InsertOutcome> {
        let InsertRequest {
            key: asked,
            session,
            attempt,
            payload,
            queue,
        } = request;
        let key = self.form(&asked);
        if !self.sessions.contains_key(&session) {
            return Err(refused(ErrorKind::SessionGone, "no such session"));
        }
        if self.closed(at.now) {
            return Err(refused(ErrorKind::Unavailable, "closed"));
        }
        if self.over.contains(&attempt) {
            return Ok(InsertOutcome::Ended);
        }
        if let Some(lock) = self.locks.get(&key) {
            if lock.attempt == attempt && !self.has(Flaw::RefusesRepeats) {
                return Ok(InsertOutcome::Granted(self.grant(&asked, lock)));
            }
            let shared = self.has(Flaw::SharesAmongOneOwner)
                && self.sessions[&lock.session].owner == self.sessions[&session].owner;
            if !shared {
                return Ok(self.refuse(&key, (session, attempt), queue, at));
            }
        }
        self.pass_over_sleeper(&key, attempt, at.now);
        let line = self.queues.get(&key);
        let head = line.and_then(|line| line.first().map(|head| head.attempt));
        let barges = self.has(Flaw::LetsOthersBarge) && queue == Queue::Never;
        if head.is_some_and(|head| head != attempt) && !barges {
            return Ok(self.refuse(&key, (session, attempt), queue, at));
        }
        if let Some(line) = self.queues.get_mut(&key) {
            line.retain(|ticket| ticket.attempt != attempt);
        }
        let token = self.mint(&key);
        let lock = Lock {
            token,
            session,
            attempt,
            payload,
            granted_at: at.wall_clock,
        };
        let grant = self.grant(&asked, &lock);
        self.locks.insert(key, lock);
        Ok(InsertOutcome::Granted(grant))
    }

    fn refuse(
        &mut self,
        key: &LockKey,
        (session, attempt): (SessionId, AttemptId),
        queue: Queue,
        at: Moment,
    ) -> InsertOutcome {
        if queue == Queue::Never {
            return InsertOutcome::Held(self.holder(key));
        }
        self.counter += 1;
        let position = self.counter;
        let line = self.queues.entry(key.clone()).or_default();
        if !line.iter().any(|ticket| ticket.attempt == attempt) {
            let ticket = Ticket {
                position,
                session,
                attempt,
                queued_at: at.wall_clock,
            };
            match self.flaw {
                Some(Flaw::ServesTheLastFirst) => line.insert(0, ticket),
                _ => line.push(ticket),
            }
        }
        let own = |ticket: &Ticket| ticket.attempt == attempt;
        let ahead = line.iter().position(own).unwrap();
        InsertOutcome::Queued(Place {
            position: line[ahead].position,
            ahead: u32::try_from(ahead).ok(),
        })
    }

    fn pass_over_sleeper(&mut self, key: &LockKey, attempt: AttemptId, now: Instant) {
        let Some(line) = self.queues.get_mut(key) else {
            return;
        };
        let freed = self.freed.entry(key.clone()).or_insert(now);
        let sleeps = now.saturating_since(*freed) >= CLAIM;
        if sleeps && line.first().is_some_and(|head| head.attempt != attempt) {
            self.over.insert(line.remove(0).attempt);
            *freed = now;
        }
    }

    fn mint(&mut self, key: &LockKey) -> FencingToken {
        let floor = self.floors.get(key).copied();
        let floor = floor.filter(|_| !self.has(Flaw::IgnoresTheFloor));
        let floor = floor.filter(|floor| floor.term() == self.term);
        self.counter = (self.counter + 1).max(floor.map_or(0, |floor| floor.counter() + 1));
        FencingToken::from_parts(self.term, self.counter).unwrap()
    }
}
