//! Sessions of a scenario, what they hold and what they wait for.

use std::sync::Arc;

use lock_spi::{
    AttemptId, FencingToken, Grant, GrantRef, InsertOutcome, InsertRequest, KeepAliveRequest,
    KeptAlive, LockKey, Owner, Payload, Place, Queue, SessionId, SessionLease, Ttl, WaitRequest,
};

use crate::scenario::Stop;
use crate::scene::Node;

/// An open session of a process.
#[derive(Clone)]
pub(crate) struct Session {
    node: Node,
    owner: Owner,
    lease: SessionLease,
}

/// A lock that a session holds.
#[derive(Clone)]
pub(crate) struct Holding {
    pub(crate) session: Session,
    pub(crate) attempt: AttemptId,
    pub(crate) grant: Grant,
}

/// A place that a session has in a key's queue.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub(crate) session: Session,
    pub(crate) attempt: AttemptId,
    pub(crate) key: LockKey,
    pub(crate) place: Place,
}

impl Session {
    pub(crate) const fn new(node: Node, owner: Owner, lease: SessionLease) -> Self {
        Self { node, owner, lease }
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) const fn id(&self) -> SessionId {
        self.lease.session
    }

    pub(crate) const fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) const fn ttl(&self) -> Ttl {
        self.lease.ttl
    }

    /// A new attempt.
    pub(crate) fn attempt(&self) -> AttemptId {
        AttemptId::random(&*self.node.runtime)
    }

    /// The request of an attempt.
    pub(crate) fn insert_request(
        &self,
        key: &LockKey,
        attempt: AttemptId,
        queue: Queue,
    ) -> InsertRequest {
        InsertRequest {
            key: key.clone(),
            session: self.id(),
            attempt,
            payload: Payload::default(),
            queue,
        }
    }

    /// Tries an attempt once.
    pub(crate) async fn insert(
        &self,
        key: &LockKey,
        attempt: AttemptId,
        queue: Queue,
    ) -> lock_spi::Result<InsertOutcome> {
        let request = self.insert_request(key, attempt, queue);
        self.node.store.try_insert(request).await
    }

    /// Tries a new attempt that takes no place.
    pub(crate) async fn try_acquire(&self, key: &LockKey) -> Result<InsertOutcome, Stop> {
        Ok(self.insert(key, self.attempt(), Queue::Never).await?)
    }

    /// Takes a key that is free.
    pub(crate) async fn acquire(&self, key: &LockKey) -> Result<Holding, Stop> {
        let attempt = self.attempt();
        let outcome = self.insert(key, attempt, Queue::Never).await?;
        Ok(self.holding(attempt, granted(outcome)))
    }

    /// Takes a place in the queue of a key that is not free.
    pub(crate) async fn enqueue(&self, key: &LockKey) -> Result<Waiting, Stop> {
        let attempt = self.attempt();
        let outcome = self.insert(key, attempt, Queue::Join).await?;
        Ok(Waiting {
            session: self.clone(),
            attempt,
            key: key.clone(),
            place: queued(outcome),
        })
    }

    /// What this session holds since `grant`.
    pub(crate) fn holding(&self, attempt: AttemptId, grant: Grant) -> Holding {
        assert_eq!(grant.session, self.id());
        Holding {
            session: self.clone(),
            attempt,
            grant,
        }
    }

    /// Renews the session and what is listed; what is not listed is given up.
    pub(crate) fn keep_alive(
        &self,
        grants: &[&Holding],
        attempts: &[AttemptId],
    ) -> impl Future<Output = lock_spi::Result<Option<KeptAlive>>> + Send + use<> {
        let store = Arc::clone(&self.node.store);
        let request = KeepAliveRequest {
            session: self.id(),
            grants: grants.iter().map(|holding| holding.named()).collect(),
            attempts: attempts.to_vec(),
        };
        async move { store.keep_alive(request).await }
    }

    /// Renews the session and what it holds.
    pub(crate) fn renew(
        &self,
        grants: &[&Holding],
    ) -> impl Future<Output = lock_spi::Result<Option<KeptAlive>>> + Send + use<> {
        let attempts: Vec<_> = grants.iter().map(|holding| holding.attempt).collect();
        self.keep_alive(grants, &attempts)
    }

    /// Closes the session.
    pub(crate) async fn close(&self) -> lock_spi::Result<()> {
        self.node.store.close_session(self.id()).await
    }
}

impl Holding {
    pub(crate) const fn key(&self) -> &LockKey {
        &self.grant.key
    }

    pub(crate) const fn token(&self) -> FencingToken {
        self.grant.token
    }

    pub(crate) fn named(&self) -> GrantRef {
        GrantRef {
            key: self.key().clone(),
            token: self.token(),
        }
    }

    /// Repeats the attempt that was granted.
    pub(crate) async fn repeat(&self) -> lock_spi::Result<InsertOutcome> {
        self.session
            .insert(self.key(), self.attempt, Queue::Never)
            .await
    }

    pub(crate) async fn extend(&self) -> lock_spi::Result<Option<Grant>> {
        let store = &self.session.node.store;
        store.extend(self.key(), self.token()).await
    }

    pub(crate) async fn release(&self) -> lock_spi::Result<bool> {
        let store = &self.session.node.store;
        store.delete_if_owner(self.key(), self.token()).await
    }

    /// Checks that the store still confirms the grant, and under which token.
    pub(crate) async fn stands(&self) -> Result<(), Stop> {
        let grant = self.extend().await?;
        let told = grant.map(|grant| (grant.key, grant.token, grant.session));
        let expected = (self.key().clone(), self.token(), self.session.id());
        assert_eq!(told, Some(expected), "the grant stands");
        Ok(())
    }

    /// Checks that the grant has ended for good: it can be neither extended, released nor repeated.
    pub(crate) async fn is_gone(&self) -> Result<(), Stop> {
        assert_eq!(self.extend().await?, None, "{} ended", self.token());
        assert!(!self.release().await?, "{} ended", self.token());
        match self.repeat().await {
            Ok(InsertOutcome::Ended) => {}
            Err(error) if error.kind() == lock_spi::ErrorKind::SessionGone => {}
            other => panic!("a grant that ended was repeated: {other:?}"),
        }
        assert_eq!(self.extend().await?, None, "{} stays ended", self.token());
        Ok(())
    }
}

impl Waiting {
    /// Tries again, as a waiter does whenever it has reason to.
    pub(crate) async fn try_again(&self) -> lock_spi::Result<InsertOutcome> {
        self.session
            .insert(&self.key, self.attempt, Queue::Join)
            .await
    }

    /// Takes its turn.
    pub(crate) async fn take(&self) -> Result<Holding, Stop> {
        let grant = granted(self.try_again().await?);
        Ok(self.session.holding(self.attempt, grant))
    }

    /// Checks that it still has the same place.
    pub(crate) async fn still_waits(&self) -> Result<(), Stop> {
        let place = queued(self.try_again().await?);
        assert_eq!(place.position, self.place.position, "the place is kept");
        Ok(())
    }

    pub(crate) async fn abandon(&self) -> lock_spi::Result<()> {
        let store = &self.session.node.store;
        store
            .abandon(&self.key, self.session.id(), self.attempt)
            .await
    }

    /// Waits for a reason to try again.
    pub(crate) fn wait(&self) -> impl Future<Output = lock_spi::Result<()>> + Send + 'static {
        let store = Arc::clone(&self.session.node.store);
        let request = WaitRequest {
            key: self.key.clone(),
            session: self.session.id(),
            attempt: self.attempt,
            place: Some(self.place.clone()),
        };
        async move { store.await_release(request).await }
    }
}

#[track_caller]
pub(crate) fn granted(outcome: InsertOutcome) -> Grant {
    match outcome {
        InsertOutcome::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn queued(outcome: InsertOutcome) -> Place {
    match outcome {
        InsertOutcome::Queued(place) => place,
        other => panic!("not queued: {other:?}"),
    }
}

/// Checks that an outcome is `Held`, by this grant where the store looked.
#[track_caller]
pub(crate) fn held_by(outcome: &InsertOutcome, holding: &Holding) {
    match outcome {
        InsertOutcome::Held(None) => {}
        InsertOutcome::Held(Some(holder)) => {
            assert_eq!(holder.token, holding.token());
            assert_eq!(holder.session, holding.session.id());
            assert_eq!(holder.owner, *holding.session.owner());
        }
        other => panic!("not held: {other:?}"),
    }
}

/// Checks that an answer is an error of this kind with which nothing happened.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: lock_spi::Result<T>, kind: lock_spi::ErrorKind) {
    match answer {
        Ok(outcome) => panic!("not refused: {outcome:?}"),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(error.effect(), lock_spi::Effect::None, "{error}");
        }
    }
}
