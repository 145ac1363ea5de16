//! What every operation shares: the way to the database, the sessions, those who wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_spi::{
    AttemptId, Error, ErrorKind, InsertRequest, LockKey, Namespace, Result, Runtime, SessionId,
};
use sqlx::types::Uuid;
use tokio::sync::watch;

use crate::batch::Batches;
use crate::calls::{Channel, Ending, Look, Notify, Wake};
use crate::client::{Answer, Call, PostgresClient};
use crate::config::PostgresConfig;
use crate::error::invalid;
use crate::listening;
use crate::session::{Session, Sessions};
use crate::wakes::Wakes;

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) client: PostgresClient,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) config: PostgresConfig,
    /// Names this store object.
    pub(crate) instance: Uuid,
    /// On which this store object is notified.
    channel: String,
    pub(crate) sessions: Sessions,
    pub(crate) inserts: Batches<InsertRequest>,
    pub(crate) releases: Batches<Ending>,
    pub(crate) wakes: Arc<Wakes>,
    listens: AtomicBool,
    /// Closed with this object, which ends the task that listens.
    life: watch::Sender<()>,
    /// Where the last clearing ended.
    pub(crate) reaped_to: Mutex<Option<String>>,
}

impl Core {
    /// Connects to the database, which must have the schema.
    pub(crate) async fn connect(
        client: PostgresClient,
        runtime: Arc<dyn Runtime>,
        config: PostgresConfig,
    ) -> Result<Self> {
        let high = u128::from(runtime.random()) << 64;
        let instance = Uuid::from_u128(high | u128::from(runtime.random()));
        let channel = Channel { instance };
        let channel = client
            .call(config.limit_to_connect(), &channel)
            .await?
            .reply;
        Ok(Self {
            client,
            runtime,
            config,
            instance,
            channel,
            sessions: Sessions::new(),
            inserts: Batches::new(),
            releases: Batches::new(),
            wakes: Arc::default(),
            listens: AtomicBool::new(false),
            life: watch::Sender::new(()),
            reaped_to: Mutex::default(),
        })
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        self.config.namespace()
    }

    /// Makes one call.
    pub(crate) async fn call<C: Call>(
        &self,
        limit: Duration,
        call: &C,
    ) -> Result<Answer<C::Reply>> {
        self.client.call(limit, call).await
    }

    /// A session of this store object; `None` when it is gone for good.
    pub(crate) async fn session(&self, session: SessionId) -> Result<Option<Arc<Session>>> {
        if let Some(own) = self.sessions.get(session) {
            return Ok(Some(own));
        }
        if self.sessions.was_closed(session) {
            return Ok(None);
        }
        let key = LockKey::new("-")?;
        let look = Look {
            namespace: self.namespace(),
            key: &key,
            session,
            attempt: AttemptId::from_u128(0),
        };
        let answer = self.call(self.config.request_timeout(), &look).await?;
        match answer.reply.session_stands {
            false => Ok(None),
            true => Err(invalid("the session was opened by another store object")),
        }
    }

    /// The limit of a call for a session, if it is one of ours.
    pub(crate) fn limit_of(&self, own: Option<&Session>) -> Duration {
        own.map_or(self.config.request_timeout(), |own| own.limit)
    }

    /// Tells waiters that it is their turn to look, in the background and as well as it goes: who
    /// waits looks again by itself.
    pub(crate) fn wake(self: &Arc<Self>, wakes: impl IntoIterator<Item = Wake>) {
        let mut others = Vec::new();
        for wake in wakes {
            match wake.channel == self.channel {
                true => self.wakes.turn(wake.attempt),
                false => others.push(wake),
            }
        }
        if others.is_empty() {
            return;
        }
        let core = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move {
            let notify = Notify { wakes: &others };
            let limit = core.config.request_timeout();
            if let Err(error) = core.call(limit, &notify).await {
                tracing::debug!(%error, "waiters were not told and will look by themselves");
            }
        }));
    }

    /// Sees to it that somebody listens.
    pub(crate) fn listen(&self) {
        if self.listens.swap(true, Ordering::Relaxed) {
            return;
        }
        let ear = listening::Ear {
            client: self.client.clone(),
            runtime: Arc::clone(&self.runtime),
            channel: self.channel.clone(),
            limit: self.config.request_timeout(),
            wakes: Arc::clone(&self.wakes),
        };
        let life = self.life.subscribe();
        self.runtime
            .spawn(Box::pin(listening::until_closed(ear, life)));
    }

    /// Tells that the counter of the tokens was found behind, and was overruled for this key.
    pub(crate) fn tell_lifted(&self, key: &LockKey, token: impl std::fmt::Display) {
        use lock_spi::names::{event, field};
        tracing::event!(
            name: event::TOKEN_FLOOR_VIOLATED,
            target: event::INCIDENT_TARGET,
            tracing::Level::ERROR,
            {
                message = event::TOKEN_FLOOR_VIOLATED,
                { field::STORE } = "postgres",
                { field::NAMESPACE } = self.namespace().as_str(),
                { field::KEY } = key.as_str(),
                { field::TOKEN } = %token,
                { field::REASON } = "dlock.fencing_token_seq went back; the token was lifted above \
                                     the last one of its key",
            }
        );
    }
}

/// An error of a call that may have changed something, or whose caller must assume so.
pub(crate) fn unconfirmed(error: Error) -> Error {
    match error.kind() {
        ErrorKind::SessionGone | ErrorKind::InvalidRequest => error,
        _ => error.with_effect(lock_spi::Effect::Unknown),
    }
}
