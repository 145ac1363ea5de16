//! Waiting for a reason to try again: `await_release`. It writes nothing and spawns nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etcd_kv::{Applied, KeyRange, KvError, KvErrorKind, MetadataStore, WatchRequest};
use futures_util::future::try_join;
use lock_spi::{Effect, FencingToken, Result, WaitRequest};

use crate::attempts::InLine;
use crate::core::Core;
use crate::ops::{Look, Part, QUEUE_LOOKED_AT, Queued};
use crate::session::Session;
use crate::wakes::{Ended, Waiter};

/// What an attempt waits for, as it was last seen or is expected.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Goal {
    /// The end of the holder.
    Lock,
    /// The end of this place, which is before its own.
    Ticket(Bytes),
}

/// What a look leads to.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Next {
    /// There is a reason to try again.
    Try,
    /// There is one: the attempt is the first in line, and the lock is free.
    Take,
    /// There will be one, at the soonest when this is reached.
    WaitFor(Goal),
    /// The ticket that was looked at is gone.
    LookForAnother,
    /// The attempt's place is beyond what was looked at.
    LookBeyond,
}

pub(crate) async fn await_release<M: MetadataStore>(
    core: &Arc<Core<M>>,
    request: &WaitRequest,
) -> Result<()> {
    if core.sessions.was_closed(request.session) {
        return Ok(());
    }
    let own = core.sessions.get(request.session);
    let limit = own
        .as_ref()
        .map_or(core.config.request_timeout(), |own| own.limit);
    let wait = Wait {
        core,
        request,
        own,
        limit,
    };
    let waited = wait.run().await;
    waited.map_err(|error| error.with_effect(Effect::None))
}

struct Wait<'a, M> {
    core: &'a Arc<Core<M>>,
    request: &'a WaitRequest,
    /// Its session, if this store object opened it.
    own: Option<Arc<Session>>,
    limit: Duration,
}

impl<M: MetadataStore> Wait<'_, M> {
    async fn run(&self) -> Result<()> {
        let facts = self.own.as_ref();
        let facts = facts.map(|own| own.facts(self.request.attempt));
        let facts = facts.unwrap_or_default();
        let has_place = self.request.place.is_some();
        let mut goal = match facts.in_line {
            InLine::Behind(ticket) if has_place => Goal::Ticket(ticket),
            _ => Goal::Lock,
        };
        let mut part = goal.part();
        let session = self.watch(self.core.keys.session(self.request.session));
        loop {
            let waiter = self.watch(self.key_of(&goal));
            // Both watches stand before the look: what happens after it is an event.
            try_join(self.stand(&session), self.stand(&waiter)).await?;
            let (seen, looked_at) = self.look(&part).await?;
            let next = match has_place {
                true => behind(&seen, &part),
                false => refused(&seen, facts.refused_by),
            };
            let wanted = match next {
                Next::Try => return Ok(()),
                Next::Take => {
                    self.note(InLine::Turn);
                    return Ok(());
                }
                Next::LookForAnother => {
                    (goal, part) = (Goal::Lock, Goal::Lock.part());
                    continue;
                }
                Next::LookBeyond => {
                    part = Part::All;
                    continue;
                }
                Next::WaitFor(wanted) => wanted,
            };
            part = wanted.part();
            if has_place {
                self.note(wanted.in_line());
            }
            if wanted != goal {
                goal = wanted;
                continue;
            }
            let ended = tokio::select! {
                biased;
                _gone_or_unknown = session.ended() => return Ok(()),
                ended = waiter.ended() => ended,
            };
            match (ended, &goal) {
                // Of before the look: another watch of the key is needed.
                (Ended::Deleted(revision), _) if revision <= looked_at => {}
                (Ended::Deleted(_), Goal::Lock) if has_place => {
                    self.note(InLine::Turn);
                    return Ok(());
                }
                (Ended::Deleted(_), Goal::Ticket(_)) if has_place => {
                    // Most of those who leave the line have taken the lock.
                    (goal, part) = (Goal::Lock, Goal::Lock.part());
                }
                (Ended::Deleted(_) | Ended::Broken, _) => return Ok(()),
            }
        }
    }

    fn key_of(&self, goal: &Goal) -> Bytes {
        match goal {
            Goal::Lock => self.core.keys.lock(&self.request.key),
            Goal::Ticket(ticket) => ticket.clone(),
        }
    }

    fn watch(&self, key: Bytes) -> Waiter<'_> {
        self.core.wakes.wait(key, |key| {
            let core = Arc::clone(self.core);
            async move {
                let limit = core.config.request_timeout();
                let begun = core.kv.watch(WatchRequest::new(KeyRange::Key(key)));
                let begun = core.runtime.timeout(limit, begun).await;
                begun.unwrap_or_else(|elapsed| Err(no_watch().with_source(elapsed)))
            }
        })
    }

    async fn stand(&self, waiter: &Waiter<'_>) -> Result<()> {
        let stands = async {
            let begun = waiter.stands().await;
            begun.map_err(|error| {
                KvError::new(error.kind(), Applied::No, "there is no watch").with_source(error)
            })
        };
        self.core.call(self.limit, stands).await
    }

    /// What is seen, and as of which revision.
    async fn look(&self, part: &Part) -> Result<(Queued, i64)> {
        let WaitRequest {
            key,
            session,
            attempt,
            ..
        } = self.request;
        let look = Look {
            wish: self.core.wish(key, *session, *attempt),
            part: part.clone(),
        };
        let answer = self.core.execute(self.limit, &look).await?;
        let header = answer.header;
        self.core.admit(self.limit, answer.before, header).await?;
        Ok((answer.reply, header.revision))
    }

    fn note(&self, in_line: InLine) {
        if let Some(own) = &self.own {
            let attempt = self.request.attempt;
            own.with_attempts(|attempts| attempts.note(attempt, |facts| facts.in_line = in_line));
        }
    }
}

impl Goal {
    /// So much of the queue shows whether it is still this.
    fn part(&self) -> Part {
        match self {
            Self::Lock => Part::Oldest(QUEUE_LOOKED_AT),
            Self::Ticket(ticket) => Part::Only(ticket.clone()),
        }
    }

    fn in_line(&self) -> InLine {
        match self {
            Self::Lock => InLine::First,
            Self::Ticket(ticket) => InLine::Behind(ticket.clone()),
        }
    }
}

/// Of an attempt with a place: whoever is before it, and for the first in line the holder.
fn behind(seen: &Queued, part: &Part) -> Next {
    if !seen.session_stands || seen.sight.place.is_none() {
        return Next::Try;
    }
    let predecessor = match (part, &seen.first, &seen.ahead) {
        (Part::Only(_), Some(ticket), _) => Some(ticket),
        (Part::Only(_), None, _) => return Next::LookForAnother,
        (Part::All | Part::Oldest(_), _, Some(ahead)) => ahead.last().map(|last| &last.stored),
        (Part::All, _, None) => return Next::Try,
        (Part::Oldest(_), _, None) => return Next::LookBeyond,
    };
    match (predecessor, &seen.sight.lock) {
        (Some(ticket), _) => Next::WaitFor(Goal::Ticket(ticket.clone())),
        (None, Some(_)) => Next::WaitFor(Goal::Lock),
        (None, None) => Next::Take,
    }
}

/// Of an attempt without one: the holder that refused it, or whoever is first in line.
fn refused(seen: &Queued, by: Option<FencingToken>) -> Next {
    match (&seen.sight.lock, &seen.first) {
        _ if !seen.session_stands => Next::Try,
        (Some(entry), _) if by.is_some_and(|by| by != entry.token) => Next::Try,
        (Some(_), _) => Next::WaitFor(Goal::Lock),
        (None, Some(first)) if by.is_none() => Next::WaitFor(Goal::Ticket(first.clone())),
        (None, _) => Next::Try,
    }
}

fn no_watch() -> KvError {
    let message = "no watch stood within the time limit";
    KvError::new(KvErrorKind::Unavailable, Applied::No, message)
}

#[cfg(test)]
mod tests;
