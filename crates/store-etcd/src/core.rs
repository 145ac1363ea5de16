//! What every operation shares: the way to etcd, the state of the namespace, the sessions.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_kv::{
    Consistency, Header, KeyValue, KvError, MetadataStore, Op, RangeRequest, RangeResponse,
};
use lock_spi::{
    AttemptId, Effect, Error, FencingToken, FloorViolation, LockKey, Result, Runtime, SessionId,
};

use crate::codec::{KeySpace, revision, token};
use crate::config::EtcdConfig;
use crate::demand::Demand;
use crate::error::{from_kv, invalid, not_now, timed_out};
use crate::horizon::Seen;
use crate::meta::{Meta, Standing};
use crate::ops::{Confirm, Operation, Verify, Wish, WriteMeta};
use crate::recovery::HoldOff;
use crate::session::{Session, Sessions};
use crate::wakes::Wakes;

/// So often is something repeated that others may get in between of.
pub(crate) const ROUNDS: usize = 8;

#[derive(Debug)]
pub(crate) struct Core<M> {
    pub(crate) kv: M,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) config: EtcdConfig,
    pub(crate) keys: KeySpace,
    /// Names this store object.
    pub(crate) instance: u128,
    pub(crate) sessions: Sessions,
    pub(crate) hold_off: HoldOff,
    pub(crate) wakes: Wakes,
    pub(crate) demand: Demand,
    standing: Mutex<Standing>,
}

/// A reply with what is needed to judge it.
#[derive(Debug)]
pub(crate) struct Answer<R> {
    pub(crate) reply: R,
    pub(crate) header: Header,
    /// What had been seen when its request was sent.
    pub(crate) before: Seen,
}

impl<M: MetadataStore> Core<M> {
    /// Reads the state of the namespace, or makes it.
    pub(crate) async fn connect(
        kv: M,
        runtime: Arc<dyn Runtime>,
        config: EtcdConfig,
    ) -> Result<Self> {
        let keys = KeySpace::new(config.namespace());
        let limit = config.request_timeout();
        let found = limited(
            &*runtime,
            limit,
            kv.get(keys.meta(), Consistency::Linearizable),
        );
        let mut found = found.await?;
        if found.kv.is_none() {
            let value = Meta::first(found.header.cluster_id);
            let create = WriteMeta {
                keys: &keys,
                expected: 0,
                value: &value,
            };
            let answer = limited(&*runtime, limit, kv.txn(create.txn())).await?;
            found.header = answer.header;
            found.kv = create.read_reply(answer)?;
        }
        let standing = Standing::new(Meta::read(found.kv.as_ref())?, found.header)?;
        let instance = (u128::from(runtime.random()) << 64) | u128::from(runtime.random());
        Ok(Self {
            kv,
            runtime,
            config,
            keys,
            instance,
            sessions: Sessions::new(),
            hold_off: HoldOff::default(),
            wakes: Wakes::default(),
            demand: Demand::new(),
            standing: Mutex::new(standing),
        })
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn meta(&self) -> Meta {
        self.standing().meta()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.standing().seen()
    }

    /// Makes one call, within the limit.
    pub(crate) async fn call<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, KvError>> + Send,
    ) -> Result<T> {
        limited(&*self.runtime, limit, call).await
    }

    /// Sends one transaction; whether its answer lies behind is not looked at yet.
    pub(crate) async fn execute<O: Operation>(
        &self,
        limit: Duration,
        operation: &O,
    ) -> Result<Answer<O::Reply>> {
        let before = self.seen();
        let txn = operation.txn();
        let writes = |ops: &[Op]| ops.iter().any(|op| !matches!(op, Op::Range(_)));
        let (then, otherwise) = (writes(&txn.then), writes(&txn.otherwise));
        let sent = self.call(limit, self.kv.txn(txn)).await;
        let answer = if then || otherwise {
            sent?
        } else {
            sent.map_err(|error| error.with_effect(Effect::None))?
        };
        let header = answer.header;
        self.standing().observe(before, header);
        let wrote = if answer.succeeded { then } else { otherwise };
        let unread = if wrote { Effect::Unknown } else { Effect::None };
        let reply = operation
            .read_reply(answer)
            .map_err(|error| error.with_effect(unread))?;
        Ok(Answer {
            reply,
            header,
            before,
        })
    }

    /// Sends one transaction and believes its answer only when it does not lie behind.
    pub(crate) async fn perform<O: Operation>(
        &self,
        limit: Duration,
        operation: &O,
    ) -> Result<O::Reply> {
        let answer = self.execute(limit, operation).await?;
        self.admit(limit, answer.before, answer.header).await?;
        Ok(answer.reply)
    }

    /// Reads a range linearizably.
    pub(crate) async fn range(
        &self,
        limit: Duration,
        request: RangeRequest,
    ) -> Result<RangeResponse> {
        let before = self.seen();
        let answer = self.call(limit, self.kv.range(request)).await;
        let answer = answer.map_err(|error| error.with_effect(Effect::None))?;
        self.admit(limit, before, answer.header).await?;
        Ok(answer)
    }

    /// Takes in an answer, unless it lies behind what was seen before its request was sent.
    pub(crate) async fn admit(&self, limit: Duration, before: Seen, header: Header) -> Result<()> {
        if self.standing().observe(before, header) {
            return Ok(());
        }
        Err(self.lies_behind(limit, before).await)
    }

    /// Finds out whether the cluster has gone back or one answer was stale; in the first case all
    /// guards are lost, and the watermark tells everybody.
    async fn lies_behind(&self, limit: Duration, before: Seen) -> Error {
        let confirm = Confirm { keys: &self.keys };
        let answer = match self.execute(limit, &confirm).await {
            Ok(answer) => answer,
            Err(error) => return error.with_effect(Effect::Unknown),
        };
        if !before.is_ahead_of(answer.header) {
            return not_now("an answer was out of date").with_effect(Effect::Unknown);
        }
        match self.note_violation(limit, before, answer.header).await {
            Ok(error) => error.with_effect(Effect::Unknown),
            Err(error) => error.with_effect(Effect::Unknown),
        }
    }

    async fn note_violation(&self, limit: Duration, before: Seen, now: Header) -> Result<Error> {
        // Somebody may have recovered the namespace already; then everything begins anew.
        self.refresh_meta(limit).await?;
        if self.seen().term != before.term {
            return Ok(not_now("the namespace was recovered meanwhile"));
        }
        let violation = FloorViolation {
            token: token(before.term, now.revision)?,
            floor: before.highest_token()?,
        };
        let first = {
            let mut standing = self.standing();
            let first = standing.violation().is_none();
            standing.violate(violation);
            first
        };
        if first && let Err(error) = self.publish_watermark(limit, violation.floor).await {
            tracing::warn!(%error, "the watermark of a cluster that went back was not published");
        }
        let violated = self.standing().violation();
        violated.ok_or_else(|| not_now("the namespace was recovered meanwhile"))
    }

    /// Tells those who come later that no token at or below `floor` may be handed out.
    async fn publish_watermark(&self, limit: Duration, floor: FencingToken) -> Result<()> {
        for _ in 0..ROUNDS {
            let meta = self.read_meta(limit).await?.0;
            let value = meta.with_watermark(floor);
            if value == meta.value {
                return Ok(());
            }
            let write = WriteMeta {
                keys: &self.keys,
                expected: meta.revision,
                value: &value,
            };
            let written = self.execute(limit, &write).await?.reply;
            if Meta::read(written.as_ref())?.value == value {
                return Ok(());
            }
        }
        Err(not_now("others kept getting in between"))
    }

    /// Reads the state, whatever was seen before.
    pub(crate) async fn read_meta(&self, limit: Duration) -> Result<(Meta, Header)> {
        let get = self.kv.get(self.keys.meta(), Consistency::Linearizable);
        let answer = self.call(limit, get).await;
        let answer = answer.map_err(|error| error.with_effect(Effect::None))?;
        Ok((Meta::read(answer.kv.as_ref())?, answer.header))
    }

    pub(crate) async fn refresh_meta(&self, limit: Duration) -> Result<Meta> {
        let (meta, header) = self.read_meta(limit).await?;
        self.standing().adopt(meta, header)?;
        Ok(self.meta())
    }

    /// Takes in the state as an admitted answer shows it.
    pub(crate) fn adopt_meta(&self, kv: Option<&KeyValue>, header: Header) -> Result<()> {
        self.standing().adopt(Meta::read(kv)?, header)
    }

    /// Takes in the state as it was read, whatever was seen before.
    pub(crate) fn adopt_meta_of(&self, meta: Meta, header: Header) -> Result<()> {
        self.standing().adopt(meta, header)
    }

    /// Refuses everything while the cluster is known to have gone back.
    pub(crate) async fn ensure_standing(&self, limit: Duration) -> Result<()> {
        if self.standing().violation().is_none() {
            return Ok(());
        }
        self.refresh_meta(limit).await?;
        self.standing().violation().map_or(Ok(()), Err)
    }

    /// Refuses to open and to grant while the namespace is closed for recovery.
    pub(crate) async fn ensure_open(&self, limit: Duration) -> Result<Meta> {
        let meta = self.meta();
        if meta.is_open() {
            return Ok(meta);
        }
        let meta = self.refresh_meta(limit).await?;
        if meta.is_open() {
            return Ok(meta);
        }
        Err(not_now(
            "the namespace is closed until its recovery is over",
        ))
    }

    /// Whether a token is of the present term; one of another term has ended.
    pub(crate) async fn is_of_this_term(
        &self,
        limit: Duration,
        token: FencingToken,
    ) -> Result<bool> {
        if token.term() == self.meta().value.term {
            return Ok(true);
        }
        Ok(token.term() == self.refresh_meta(limit).await?.value.term)
    }

    /// A session of this store object; `None` when it is gone for good.
    pub(crate) async fn session(&self, session: SessionId) -> Result<Option<Arc<Session>>> {
        if let Some(own) = self.sessions.get(session) {
            return Ok(Some(own));
        }
        if self.sessions.was_closed(session) {
            return Ok(None);
        }
        let verify = Verify {
            keys: &self.keys,
            session,
            locks: &[],
        };
        let verified = self.perform(self.config.request_timeout(), &verify).await?;
        match verified.session {
            None => Ok(None),
            Some(_) => Err(invalid("the session was opened by another store object")),
        }
    }

    pub(crate) fn wish<'a>(
        &'a self,
        key: &'a LockKey,
        session: SessionId,
        attempt: AttemptId,
    ) -> Wish<'a> {
        Wish {
            keys: &self.keys,
            key,
            session,
            attempt,
        }
    }
}

async fn limited<T>(
    runtime: &dyn Runtime,
    limit: Duration,
    call: impl Future<Output = Result<T, KvError>> + Send,
) -> Result<T> {
    let answer = runtime.timeout(limit, call).await.map_err(timed_out)?;
    answer.map_err(from_kv)
}

/// An answer from before a token says nothing of its grant.
pub(crate) fn covers(header: Header, token: FencingToken) -> Result<()> {
    if header.revision >= revision(token) {
        return Ok(());
    }
    Err(not_now("the answer is older than the token"))
}
