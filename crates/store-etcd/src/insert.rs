//! Taking a lock: `try_insert`, from the first look to the grant.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{MetadataStore, RangeRequest};
use lock_spi::{AttemptId, Effect, InsertOutcome, InsertRequest, Instant, Place, Queue, Result};

use crate::attempts::{Facts, InLine};
use crate::codec::LockEntry;
use crate::core::{Core, ROUNDS};
use crate::demand::Seen;
use crate::error::{not_now, session_gone};
use crate::ops::{Bump, Look, Part, QUEUE_LOOKED_AT, Queued, Ticket, Wish};
use crate::renew::Renewal;
use crate::session::{AtWork, Session};
use crate::turn::{Next, next, places};
use crate::view::holder;

/// One call of `try_insert`.
pub(crate) struct Insertion<'a, M> {
    pub(crate) core: &'a Arc<Core<M>>,
    pub(crate) session: &'a Arc<Session>,
    pub(crate) request: &'a InsertRequest,
    /// Something of this call may have taken hold and was not accounted for.
    pub(crate) uncertain: bool,
    /// When the last look was sent and when it was answered.
    looked: Option<(Instant, Instant)>,
}

/// What a step leads to.
pub(crate) enum Step {
    Done(InsertOutcome),
    /// Ask for the lock without a look.
    Claim,
    /// Take a place without a look.
    Enqueue,
    /// Take the lock without a look: it is free, and this place the first in line.
    Take(i64),
    /// Look before anything else.
    Look,
    /// Decide by this.
    Decide(Box<Queued>),
}

pub(crate) async fn try_insert<M: MetadataStore>(
    core: Arc<Core<M>>,
    request: InsertRequest,
) -> Result<InsertOutcome> {
    core.ensure_standing(core.config.request_timeout()).await?;
    let session = core.session(request.session).await?;
    let session = session.ok_or_else(|| session_gone("the session is closed or has expired"))?;
    let Some(at_work) = AtWork::begin(&session, request.attempt, &request.key) else {
        return Ok(InsertOutcome::Ended);
    };
    let _turn = at_work.turn().await;
    let mut insertion = Insertion {
        core: &core,
        session: &session,
        request: &request,
        uncertain: false,
        looked: None,
    };
    let outcome = insertion.run().await;
    outcome.map_err(|error| match insertion.uncertain {
        true => error.with_effect(Effect::Unknown),
        false => error,
    })
}

impl<'a, M: MetadataStore> Insertion<'a, M> {
    async fn run(&mut self) -> Result<InsertOutcome> {
        let mut step = self.first_step();
        for _ in 0..ROUNDS {
            if self.session.has_ended(self.attempt()) {
                return Ok(InsertOutcome::Ended);
            }
            self.core.ensure_open(self.limit()).await?;
            self.ensure_margin().await?;
            if self.session.with_epoch(|epoch| epoch.current()).is_none() {
                step = self.settle().await?;
            }
            step = match step {
                Step::Claim => self.claim().await?,
                Step::Enqueue => self.enqueue().await?,
                Step::Take(place) => self.take(place, &[]).await?,
                Step::Look => self.look().await?,
                Step::Decide(seen) => self.decide(&seen).await?,
                Step::Done(_) => step,
            };
            if let Step::Done(outcome) = step {
                return Ok(outcome);
            }
        }
        Err(not_now("others kept getting in between"))
    }

    pub(crate) fn attempt(&self) -> AttemptId {
        self.request.attempt
    }

    pub(crate) fn limit(&self) -> Duration {
        self.session.limit
    }

    pub(crate) fn wish(&self) -> Wish<'a> {
        let InsertRequest { key, attempt, .. } = self.request;
        self.core.wish(key, self.session.id, *attempt)
    }

    /// A transaction costs a raft entry even when it is refused. Where that is likely, who would
    /// wait takes a place at once, which also shows what is before it; for others a read comes first.
    fn first_step(&self) -> Step {
        let facts = self.session.facts(self.attempt());
        if let (Some(place), InLine::Turn) = (facts.place, &facts.in_line) {
            // Of a lock that was seen free it is known only once.
            self.note(|facts| facts.in_line = InLine::First);
            return Step::Take(place);
        }
        let has_something = facts.grant.is_some() || facts.place.is_some();
        if has_something || facts.lost_after.is_some() {
            return Step::Look;
        }
        match (self.core.demand.of(&self.request.key), self.request.queue) {
            (Seen::Free, _) => Step::Claim,
            (Seen::Held | Seen::Wanted, Queue::Join) => Step::Enqueue,
            (Seen::Held | Seen::Wanted, Queue::Never) => Step::Look,
        }
    }

    /// Nothing is granted under a session that may be over before its holder knows.
    async fn ensure_margin(&self) -> Result<()> {
        let (core, session) = (self.core, self.session);
        if session.is_over(core.runtime.now()) {
            core.close(session.id, self.limit()).await?;
            return Err(session_gone("the session has expired"));
        }
        if session.has_margin(core.runtime.now()) {
            return Ok(());
        }
        let renewal = core.renew(session.id, self.limit(), &[]).await;
        match renewal.map_err(|error| error.with_effect(Effect::None))? {
            Renewal::Confirmed { until, .. } => session.confirm(until),
            Renewal::Gone => {
                core.sessions.closed(session.id);
                return Err(session_gone("the session has expired"));
            }
        }
        if session.has_margin(core.runtime.now()) {
            return Ok(());
        }
        Err(not_now("too little is left of the session"))
    }

    /// Makes sure that nothing that was sent before can still arrive.
    async fn settle(&mut self) -> Result<Step> {
        let (core, session) = (self.core, self.session);
        let _one_at_a_time = session.bumping.lock().await;
        if session.with_epoch(|epoch| epoch.current()).is_some() {
            return Ok(Step::Look);
        }
        let sent = session.with_epoch(|epoch| epoch.sent());
        let bump = Bump { wish: self.wish() };
        let Some((epoch, sight)) = core.perform(self.limit(), &bump).await? else {
            core.sessions.closed(session.id);
            return Err(session_gone("the session has expired"));
        };
        session.with_epoch(|state| state.raised(sent, epoch));
        match sight.held_by(self.attempt()) {
            Some(entry) => self.holds(entry, sight.floor).await,
            None => Ok(Step::Look),
        }
    }

    async fn look(&mut self) -> Result<Step> {
        let sent = self.core.runtime.now();
        let look = Look {
            wish: self.wish(),
            part: Part::Oldest(QUEUE_LOOKED_AT),
        };
        let answer = self.core.execute(self.limit(), &look).await?;
        self.core
            .admit(self.limit(), answer.before, answer.header)
            .await?;
        let seen = answer.reply;
        self.core.adopt_meta(seen.meta.as_ref(), answer.header)?;
        if !seen.session_stands {
            self.core.sessions.closed(self.session.id);
            return Err(session_gone("the session has expired"));
        }
        self.looked = Some((sent, self.core.runtime.now()));
        Ok(Step::Decide(Box::new(seen)))
    }

    async fn decide(&mut self, seen: &Queued) -> Result<Step> {
        let facts = self.session.facts(self.attempt());
        if let Some(ahead) = &seen.ahead {
            let last = ahead.last().map(|ticket| ticket.stored.clone());
            self.note(|facts| facts.in_line = last.map_or(InLine::First, InLine::Behind));
        }
        let joins = self.request.queue == Queue::Join;
        let next = next(self.attempt(), &facts, joins, seen);
        if !matches!(next, Next::Take { .. }) {
            let attempt = self.attempt();
            self.session
                .with_attempts(|attempts| attempts.not_stalled(attempt));
        }
        match next {
            Next::Holds(entry) => self.holds(&entry, seen.sight.floor).await,
            Next::Over => Ok(self.over()),
            Next::Take { place, behind } => self.take_turn(place, &behind).await,
            Next::Waits { place, ahead } => Ok(self.waits(place, ahead)),
            Next::Claim | Next::Enqueue | Next::Refused(_) if self.ended_unseen(&facts).await? => {
                Ok(self.over())
            }
            Next::Claim => {
                self.core.demand.note(&self.request.key, Seen::Free);
                self.claim().await
            }
            Next::Enqueue => self.enqueue().await,
            Next::Refused(entry) => Ok(self.refused(entry.as_deref())),
        }
    }

    /// Whether a request that was lost may have made a grant that was revoked before anybody knew
    /// of it. Nothing of the attempt was seen; if nothing was revoked either, nothing was made.
    async fn ended_unseen(&mut self, facts: &Facts) -> Result<bool> {
        let Some(lost_after) = facts.lost_after else {
            return Ok(false);
        };
        let records = RangeRequest {
            keys_only: true,
            ..RangeRequest::prefix(self.core.keys.revocations(&self.request.key))
        };
        let records = self.core.range(self.limit(), records).await?.kvs;
        let revoked = records.iter().any(|kv| kv.create_revision > lost_after);
        if !revoked {
            self.note(|facts| facts.lost_after = None);
            self.uncertain = false;
        }
        Ok(revoked)
    }

    /// Takes the lock when it is this attempt's turn, or when those before it have let it pass.
    async fn take_turn(&mut self, place: i64, behind: &[Ticket]) -> Result<Step> {
        let share = self.core.config.skip_after();
        let attempt = self.attempt();
        let may_skip = |looked| {
            self.session
                .with_attempts(|attempts| attempts.may_skip(attempt, behind, looked, share))
        };
        if behind.is_empty() || self.looked.is_some_and(may_skip) {
            return self.take(place, behind).await;
        }
        Ok(self.waits(place, Some(places(behind))))
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut Facts)) {
        let attempt = self.attempt();
        self.session
            .with_attempts(|attempts| attempts.note(attempt, change));
    }

    fn over(&self) -> Step {
        self.core.sessions.end(self.session, self.attempt());
        Step::Done(InsertOutcome::Ended)
    }

    pub(crate) fn waits(&self, place: i64, ahead: Option<u32>) -> Step {
        self.note(|facts| facts.place = Some(place));
        self.core.demand.note(&self.request.key, Seen::Wanted);
        let position = place.unsigned_abs();
        Step::Done(InsertOutcome::Queued(Place { position, ahead }))
    }

    fn refused(&self, entry: Option<&LockEntry>) -> Step {
        self.note(|facts| facts.refused_by = entry.map(|entry| entry.token));
        self.core.demand.note(&self.request.key, Seen::Wanted);
        let holder = entry.map(|entry| holder(self.core, entry));
        Step::Done(InsertOutcome::Held(holder))
    }
}
