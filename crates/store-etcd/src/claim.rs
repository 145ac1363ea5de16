//! The requests of an insert that make something, and what their replies lead to.

use etcd_kv::{Header, MetadataStore};
use lock_spi::{
    Effect, Error, FencingToken, FloorViolation, Grant, InsertOutcome, InsertRequest, Result,
};

use crate::attempts::InLine;
use crate::codec::{LockEntry, LockValue, TicketValue, token};
use crate::core::Answer;
use crate::demand::Seen as Demand;
use crate::error::nonsense;
use crate::horizon::Seen;
use crate::insert::{Insertion, Step};
use crate::meta::Meta;
use crate::ops::{
    Claim, Enqueue, EnqueueReply, Grant as GrantFree, Minted, Operation, Queued, Refusal, Take,
    Ticket,
};
use crate::release::undo;
use crate::session::Sent;

impl<M: MetadataStore> Insertion<'_, M> {
    /// Asks for a key that is free, as far as is known.
    pub(crate) async fn claim(&mut self) -> Result<Step> {
        let meta = self.core.meta();
        let Some(epoch) = self.session.with_epoch(|epoch| epoch.current()) else {
            return Ok(Step::Look);
        };
        let value = self.lock_value(&meta);
        let grant = GrantFree {
            wish: self.wish(),
            epoch,
            meta: meta.revision,
            value: &value,
        };
        let Some(answer) = self.create(&grant).await? else {
            return Ok(Step::Look);
        };
        self.claimed(answer, &meta, Some(epoch)).await
    }

    /// Takes a place at the end of the queue.
    pub(crate) async fn enqueue(&mut self) -> Result<Step> {
        let meta = self.core.meta();
        let Some(epoch) = self.session.with_epoch(|epoch| epoch.current()) else {
            return Ok(Step::Look);
        };
        let value = TicketValue {
            owner: self.session.owner.clone(),
            session: self.session.id,
            queued_at: self.core.runtime.wall_clock(),
        };
        let enqueue = Enqueue {
            wish: self.wish(),
            epoch,
            meta: meta.revision,
            value: &value,
        };
        let Some(answer) = self.create(&enqueue).await? else {
            return Ok(Step::Look);
        };
        self.admit(answer.before, answer.header).await?;
        match answer.reply {
            EnqueueReply::Placed {
                place,
                lock,
                before,
            } => {
                self.uncertain = true;
                let is_first = before.is_none();
                self.note(|facts| {
                    facts.place = Some(place);
                    facts.in_line =
                        before.map_or(InLine::First, |last| InLine::Behind(last.stored));
                });
                Ok(match lock {
                    None if is_first => {
                        self.core.demand.note(&self.request.key, Demand::Free);
                        Step::Take(place)
                    }
                    // With the key free, those before it may be late.
                    None => Step::Look,
                    Some(_) => self.waits(place, is_first.then_some(0)),
                })
            }
            EnqueueReply::Refused(refusal) => {
                self.passed_over(refusal, answer.header, &meta, Some(epoch))
                    .await
            }
        }
    }

    /// Turns the attempt's place into a grant, past those who let it pass.
    pub(crate) async fn take(&mut self, place: i64, skip: &[Ticket]) -> Result<Step> {
        let meta = self.core.meta();
        let value = self.lock_value(&meta);
        let take = Take {
            wish: self.wish(),
            meta: meta.revision,
            place,
            skip,
            value: &value,
        };
        self.note(|facts| facts.place = Some(place));
        match self.core.execute(self.limit(), &take).await {
            Ok(answer) => self.claimed(answer, &meta, None).await,
            Err(error) if error.effect() == Effect::None => Err(error),
            Err(_) => {
                // Its ticket is single-use, so it may be sent again freely.
                self.uncertain = true;
                Ok(Step::Look)
            }
        }
    }

    /// Sends a creating request; `None` when its answer was lost, and then it must be settled, or
    /// when the attempt was ended meanwhile.
    async fn create<O: Operation>(&mut self, operation: &O) -> Result<Option<Answer<O::Reply>>> {
        let seen = self.core.seen().revision;
        let Some(sent) = Sent::now(self.session, self.attempt()) else {
            return Ok(None);
        };
        match self.core.execute(self.limit(), operation).await {
            Ok(answer) => {
                sent.answered();
                Ok(Some(answer))
            }
            Err(error) if error.effect() == Effect::None => {
                sent.answered();
                Err(error)
            }
            Err(_) => {
                drop(sent);
                self.uncertain = true;
                self.note(|facts| {
                    facts.lost_after.get_or_insert(seen);
                });
                Ok(None)
            }
        }
    }

    async fn claimed(
        &mut self,
        answer: Answer<Claim>,
        meta: &Meta,
        epoch: Option<i64>,
    ) -> Result<Step> {
        let Answer {
            reply,
            header,
            before,
        } = answer;
        match reply {
            Claim::Granted(minted) => self.accept(minted, header, before, meta).await,
            Claim::Refused(refusal) => {
                self.admit(before, header).await?;
                self.passed_over(refusal, header, meta, epoch).await
            }
        }
    }

    /// A request did nothing: the epoch, the state of the namespace or the key was not as thought.
    async fn passed_over(
        &mut self,
        refusal: Box<Refusal>,
        header: Header,
        meta: &Meta,
        epoch: Option<i64>,
    ) -> Result<Step> {
        if let Some(found) = refusal.epoch {
            self.session.with_epoch(|epoch| match found {
                0 => epoch.vanished(),
                found => epoch.adopt(found),
            });
        }
        self.core.adopt_meta(refusal.meta.as_ref(), header)?;
        if let Some(entry) = refusal.sight.held_by(self.attempt()) {
            return self.holds(entry, refusal.sight.floor).await;
        }
        let as_thought = refusal.epoch == epoch && self.core.meta().revision == meta.revision;
        if !as_thought || refusal.sight.place.is_some() || epoch.is_none() {
            return Ok(Step::Look);
        }
        Ok(Step::Decide(Box::new(Queued {
            sight: refusal.sight,
            anybody: true,
            ..Queued::default()
        })))
    }

    /// A grant was made; it is handed out only above every floor that is known.
    async fn accept(
        &mut self,
        minted: Minted,
        header: Header,
        before: Seen,
        meta: &Meta,
    ) -> Result<Step> {
        self.uncertain = true;
        let token = token(meta.value.term, minted.revision)?;
        let seen = before.highest_token()?;
        let floor = minted.floor.max(meta.value.watermark).max(Some(seen));
        let in_order = before.cluster_id == header.cluster_id && Some(token) > floor;
        if !in_order {
            return Err(self
                .violated(token, floor.unwrap_or(seen), Some((before, header)))
                .await);
        }
        self.admit(before, header).await?;
        Ok(self.granted(token))
    }

    /// The attempt holds the lock already: by an earlier call, or by a request without an answer.
    pub(crate) async fn holds(
        &mut self,
        entry: &LockEntry,
        floor: Option<FencingToken>,
    ) -> Result<Step> {
        if !entry.leased || entry.value.session != self.session.id {
            return Err(nonsense(
                "the lock of this attempt does not end with its session",
            ));
        }
        let floor = floor.max(self.core.meta().value.watermark);
        let handed_out = self.session.facts(self.attempt()).grant == Some(entry.token);
        match floor {
            Some(floor) if !handed_out && entry.token <= floor => {
                Err(self.violated(entry.token, floor, None).await)
            }
            _ => Ok(self.granted(entry.token)),
        }
    }

    fn granted(&self, token: FencingToken) -> Step {
        let InsertRequest { key, .. } = self.request;
        self.core.demand.granted(key);
        self.note(|facts| facts.lost_after = None);
        let sessions = &self.core.sessions;
        if !sessions.granted(self.session, self.attempt(), token) {
            // It was abandoned meanwhile; whoever did that sees the lock and ends it.
            return Step::Done(InsertOutcome::Ended);
        }
        let remaining = self.session.remaining(self.core.runtime.now());
        Step::Done(InsertOutcome::Granted(Grant {
            key: key.clone(),
            token,
            session: self.session.id,
            remaining: Some(remaining),
        }))
    }

    /// Undoes a grant at or below its floor.
    async fn violated(
        &mut self,
        token: FencingToken,
        floor: FencingToken,
        answer: Option<(Seen, Header)>,
    ) -> Error {
        let undone = undo(self.core, self.session, &self.request.key, token).await;
        self.uncertain = undone == Effect::Unknown;
        self.core.sessions.end(self.session, self.attempt());
        if let Some((before, header)) = answer
            && let Err(error) = self.admit(before, header).await
        {
            return error.with_effect(undone);
        }
        let violation = FloorViolation { token, floor };
        Error::floor_violated(violation, "a grant below its floor was undone").with_effect(undone)
    }

    async fn admit(&self, before: Seen, header: Header) -> Result<()> {
        self.core.admit(self.limit(), before, header).await
    }

    fn lock_value(&self, meta: &Meta) -> LockValue {
        LockValue {
            owner: self.session.owner.clone(),
            session: self.session.id,
            attempt: self.attempt(),
            term: meta.value.term,
            payload: self.request.payload.clone(),
            granted_at: self.core.runtime.wall_clock(),
        }
    }
}
