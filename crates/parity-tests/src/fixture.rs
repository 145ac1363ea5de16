//! What the author of a store brings: a deployment to play scenarios on.

use std::sync::Arc;

use async_trait::async_trait;
use lock_spi::{FencingToken, LockKey, LockStore, Runtime, SessionId};

use crate::lack::Lack;
use crate::scenario::{Scenario, Verdict};

/// Plays scenarios on a store; what [`suite!`](crate::suite!) takes.
pub trait Fixture {
    /// What the store does without. The scenarios that need it are reported and left out; one that
    /// applies all the same is a failure.
    const LACKS: &'static [Lack] = &[];

    /// Plays `scenario` to its end, on a deployment whose namespace nothing has used before.
    ///
    /// A simulated store may play it several times, each time with another seed.
    ///
    /// # Errors
    ///
    /// What [`Scenario::play`] answers.
    fn run(scenario: &Scenario) -> Verdict;
}

/// One namespace of a store, with its operator's means.
#[async_trait]
pub trait Deployment: Send + Sync + 'static {
    /// The clock that the stores go by: virtual, or the real one.
    fn runtime(&self) -> Arc<dyn Runtime>;

    /// A new store object on the namespace, as another process would have it.
    async fn connect(&self) -> Connection;

    /// Ends a session behind its holder's back, and with it everything that it holds.
    async fn end_session(&self, session: SessionId);

    /// Deletes the entry of a lock that is held, behind its holder's back.
    async fn delete_lock(&self, key: &LockKey);

    /// Sets the token floor of a key by hand.
    async fn raise_floor(&self, key: &LockKey, floor: FencingToken);

    /// Names every lock, place and session that is stored; what outlives them on purpose (floors,
    /// records, emptied rows) is left out.
    async fn residue(&self) -> Vec<String>;
}

/// A store object and, where they can be had, the faults on its way to its server.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The store object.
    pub store: Arc<dyn LockStore>,
    /// The way to its server, and nobody else's.
    pub faults: Option<Arc<dyn FaultPort>>,
}

/// Faults on the way between one store object and its server.
pub trait FaultPort: std::fmt::Debug + Send + Sync {
    /// The next `count` requests that write or renew are applied, and their answers are lost.
    fn lose_next_replies(&self, count: u32);

    /// The next `count` requests that write or renew are lost on their way.
    fn lose_next_requests(&self, count: u32);

    /// From now on requests are under way and do not arrive.
    fn hold_requests(&self);

    /// Those that were held arrive now, whether or not anybody still waits for their answers.
    fn release_requests(&self);

    /// Nothing arrives any more, in either direction.
    fn partition(&self);

    /// Every fault ends: what is sent from now on arrives, and so do the answers.
    fn heal(&self);
}
