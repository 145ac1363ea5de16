//! What scenarios are told in: processes, sessions, locks that are held, places in a queue.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{
    Holder, LockKey, LockStore, OpenSessionRequest, Owner, Reason, RevocationId, RevokeRequest,
    RevokeTarget, Runtime, SessionId, StoreAdmin, Ttl,
};

use crate::fixture::{Connection, Deployment, FaultPort};
use crate::lack::Lack;
use crate::scenario::Stop;
use crate::session::Session;

/// Within this time every operation answers, whatever happens to the network.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long a scenario waits for what takes time only on a real server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Within this time an operation that nobody waits for any more has run to its end in calm weather.
const SETTLED: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The ttl of sessions that outlive their scenario.
const LASTING: Duration = Duration::from_secs(600);

/// Where a scenario plays.
#[derive(Clone)]
pub(crate) struct Scene {
    deployment: Arc<dyn Deployment>,
    runtime: Arc<dyn Runtime>,
}

/// A process: one store object.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) store: Arc<dyn LockStore>,
    pub(crate) runtime: Arc<dyn Runtime>,
    faults: Option<Arc<dyn FaultPort>>,
}

impl Scene {
    pub(crate) fn new(deployment: Arc<dyn Deployment>) -> Self {
        let runtime = deployment.runtime();
        Self {
            deployment,
            runtime,
        }
    }

    /// A new process.
    pub(crate) async fn node(&self) -> Node {
        let Connection { store, faults } = self.deployment.connect().await;
        Node {
            store,
            runtime: Arc::clone(&self.runtime),
            faults,
        }
    }

    /// A new process whose network can fail.
    pub(crate) async fn faulty_node(&self) -> Result<(Node, Arc<dyn FaultPort>), Stop> {
        let node = self.node().await;
        match node.faults.clone() {
            Some(faults) => Ok((node, faults)),
            None => Err(Stop::NotApplicable(Lack::Faults)),
        }
    }

    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    pub(crate) fn operator(&self) -> &dyn Deployment {
        &*self.deployment
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.runtime.sleep(duration).await;
    }

    /// Lets what was begun come to its end.
    pub(crate) async fn settle(&self) {
        self.sleep(SETTLED).await;
    }

    /// Looks until `condition` holds.
    pub(crate) async fn eventually(
        &self,
        what: &str,
        limit: Duration,
        mut condition: impl AsyncFnMut() -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        let deadline = self.runtime.now() + limit;
        while !condition().await? {
            assert!(
                self.runtime.now() < deadline,
                "not within {limit:?}: {what}"
            );
            self.sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Repeats a call, as a client does, until it has an outcome.
    pub(crate) async fn insist<T>(
        &self,
        mut call: impl AsyncFnMut() -> lock_spi::Result<T>,
    ) -> Result<T, Stop> {
        let deadline = self.runtime.now() + ANSWER_LIMIT * 2;
        loop {
            match call().await {
                Err(error) if error.is_retryable() && self.runtime.now() < deadline => {
                    self.sleep(LOOK_AGAIN).await;
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// What `future` answers, within `limit`.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        limit: Duration,
        future: impl Future<Output = T> + Send,
    ) -> T {
        match self.runtime.timeout(limit, future).await {
            Ok(answer) => answer,
            Err(_) => panic!("not within {limit:?}: {what}"),
        }
    }

    /// Polls `future` at most `polls` times and drops it, as callers who lose interest do; `true`
    /// when it was done before that.
    pub(crate) async fn drop_after<T>(
        &self,
        polls: usize,
        future: impl Future<Output = T> + Send,
    ) -> bool {
        let mut left = polls;
        let mut future = Box::pin(future);
        std::future::poll_fn(move |context| {
            if left == 0 {
                return std::task::Poll::Ready(false);
            }
            left -= 1;
            match future.as_mut().poll(context) {
                std::task::Poll::Ready(_) => std::task::Poll::Ready(true),
                std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(false),
                std::task::Poll::Pending => std::task::Poll::Pending,
            }
        })
        .await
    }

    /// Waits until a key whose holder is no longer kept alive is free.
    pub(crate) async fn until_expired(
        &self,
        observer: &Node,
        session: &Session,
        key: &LockKey,
    ) -> Result<(), Stop> {
        let limit = session.ttl().as_duration() + observer.hand_over_bound();
        self.eventually("the holder's session expires", limit, async || {
            Ok(observer.holder(key).await?.is_none())
        })
        .await
    }

    /// Waits until nothing is stored but these sessions.
    pub(crate) async fn nothing_is_left_but(&self, sessions: usize) -> Result<(), Stop> {
        let deadline = self.runtime.now() + PATIENCE;
        loop {
            let residue = self.deployment.residue().await;
            if residue.len() == sessions {
                return Ok(());
            }
            assert!(
                self.runtime.now() < deadline,
                "beside {sessions} sessions something is left: {residue:#?}"
            );
            self.sleep(LOOK_AGAIN).await;
        }
    }
}

impl Node {
    /// Opens a session that outlives the scenario.
    pub(crate) async fn session(&self, owner: &str) -> Result<Session, Stop> {
        self.session_of(owner, Ttl::new(LASTING)?).await
    }

    /// Opens a session with the least ttl.
    pub(crate) async fn brief_session(&self, owner: &str) -> Result<Session, Stop> {
        self.session_of(owner, self.store.descriptor().capabilities.min_ttl)
            .await
    }

    /// Opens a session.
    pub(crate) async fn session_of(&self, owner: &str, ttl: Ttl) -> Result<Session, Stop> {
        let request = self.open_request(owner, ttl)?;
        let lease = self.store.open_session(request.clone()).await?;
        assert_eq!(lease.session, request.session);
        assert!(lease.ttl >= ttl, "asked for {ttl}, got {}", lease.ttl);
        assert!(lease.remaining <= lease.ttl.as_duration());
        Ok(Session::new(self.clone(), request.owner, lease))
    }

    /// The request for a new session.
    pub(crate) fn open_request(&self, owner: &str, ttl: Ttl) -> Result<OpenSessionRequest, Stop> {
        Ok(OpenSessionRequest {
            session: SessionId::random(&*self.runtime),
            owner: Owner::new(owner)?,
            ttl,
        })
    }

    /// The request to revoke.
    pub(crate) fn revoke_request(
        &self,
        key: &LockKey,
        target: RevokeTarget,
    ) -> Result<RevokeRequest, Stop> {
        Ok(RevokeRequest {
            key: key.clone(),
            target,
            id: RevocationId::random(&*self.runtime),
            by: Owner::new("operator")?,
            reason: Reason::new("stuck since three")?,
        })
    }

    /// Who holds the key, as far as a reader can know.
    pub(crate) async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, Stop> {
        Ok(self.store.read(key).await?.holder)
    }
}

impl Node {
    /// What operators need.
    pub(crate) fn admin(&self) -> Result<&dyn StoreAdmin, Stop> {
        let lacking = Stop::NotApplicable(Lack::Operators);
        self.store.admin().ok_or(lacking)
    }

    /// How late a waiter may be granted after its holder's ttl.
    pub(crate) fn hand_over_bound(&self) -> Duration {
        self.store.descriptor().capabilities.hand_over_bound
    }

    /// Revokes whoever holds the key.
    pub(crate) async fn revoke(&self, key: &LockKey) -> Result<lock_spi::LockOutcome, Stop> {
        let request = self.revoke_request(key, RevokeTarget::Whoever)?;
        Ok(self.store.revoke(request).await?)
    }
}

/// The answer of a task.
pub(crate) async fn joined<T>(task: lock_spi::Joined<lock_spi::Result<T>>) -> Result<T, Stop> {
    match task.await {
        Ok(answer) => Ok(answer?),
        Err(lost) => panic!("{lost}"),
    }
}

/// Polls a future once: its answer, if it has one already.
pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        let polled = std::pin::Pin::new(&mut *future).poll(context);
        std::task::Poll::Ready(match polled {
            std::task::Poll::Ready(answer) => Some(answer),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
