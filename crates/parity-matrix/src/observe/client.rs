//! A client of a store that is looked at.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use lock_spi::{
    AttemptId, FencingToken, Grant, InsertOutcome, InsertRequest, LockKey, LockOutcome, LockStore,
    OpenSessionRequest, Owner, Payload, Place, Queue, Reason, RevocationId, RevokeRequest,
    RevokeTarget, Runtime, SessionId, SessionLease, Ttl,
};
use parity_tests::FaultPort;

use super::Ledger;

/// Longer than any of this takes.
const LASTING: Duration = Duration::from_secs(600);

/// A process with a session.
pub(super) struct Client {
    pub(super) store: Arc<dyn LockStore>,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) faults: Option<Arc<dyn FaultPort>>,
    pub(super) lease: SessionLease,
}

impl Client {
    pub(super) async fn new(place: &dyn Ledger) -> Result<Self> {
        Self::of(place, Ttl::new(LASTING)?).await
    }

    pub(super) async fn of(place: &dyn Ledger, ttl: Ttl) -> Result<Self> {
        let connection = place.connect().await;
        let runtime = place.runtime();
        let request = OpenSessionRequest {
            session: SessionId::random(&*runtime),
            owner: Owner::new("observer")?,
            ttl,
        };
        let lease = connection.store.open_session(request).await?;
        Ok(Self {
            store: connection.store,
            runtime,
            faults: connection.faults,
            lease,
        })
    }

    pub(super) fn attempt(&self) -> AttemptId {
        AttemptId::random(&*self.runtime)
    }

    pub(super) fn request(&self, key: &LockKey, attempt: AttemptId, queue: Queue) -> InsertRequest {
        InsertRequest {
            key: key.clone(),
            session: self.lease.session,
            attempt,
            payload: Payload::default(),
            queue,
        }
    }

    pub(super) async fn insert(
        &self,
        key: &LockKey,
        attempt: AttemptId,
        queue: Queue,
    ) -> lock_spi::Result<InsertOutcome> {
        let request = self.request(key, attempt, queue);
        self.store.try_insert(request).await
    }

    pub(super) async fn grant(&self, key: &LockKey) -> Result<Grant> {
        match self.insert(key, self.attempt(), Queue::Never).await? {
            InsertOutcome::Granted(grant) => Ok(grant),
            other => bail!("not granted: {other:?}"),
        }
    }

    pub(super) async fn enqueue(&self, key: &LockKey, attempt: AttemptId) -> Result<Place> {
        match self.insert(key, attempt, Queue::Join).await? {
            InsertOutcome::Queued(place) => Ok(place),
            other => bail!("no place: {other:?}"),
        }
    }

    pub(super) async fn release(&self, grant: &Grant) -> Result<()> {
        match self.store.delete_if_owner(&grant.key, grant.token).await? {
            true => Ok(()),
            false => bail!("not released"),
        }
    }

    pub(super) async fn grant_and_release(&self, key: &LockKey) -> Result<FencingToken> {
        let grant = self.grant(key).await?;
        self.release(&grant).await?;
        Ok(grant.token)
    }

    pub(super) async fn revoke(&self, key: &LockKey) -> Result<LockOutcome> {
        let request = RevokeRequest {
            key: key.clone(),
            target: RevokeTarget::Whoever,
            id: RevocationId::random(&*self.runtime),
            by: Owner::new("operator")?,
            reason: Reason::new("to see what happens")?,
        };
        Ok(self.store.revoke(request).await?)
    }
}

/// A key by its name.
pub(super) fn key(name: &str) -> Result<LockKey> {
    Ok(LockKey::new(name)?)
}

/// A token relative to the first.
pub(super) fn relative(token: FencingToken, first: FencingToken) -> String {
    match token.as_u64().checked_sub(first.as_u64()) {
        Some(0) => "t".to_owned(),
        Some(more) => format!("t + {more}"),
        None => "below t".to_owned(),
    }
}
