use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_spi::FencingToken;

use crate::node::Node;
use crate::record::{Lane, What};

/// Something that a lock protects, in a simulated world: a number that clients read and write.
///
/// It is some way off, so that reading and writing take time, and a client that goes on although its
/// lock is over does harm: unless it writes with its token, and the resource refuses older ones than
/// it has seen.
#[derive(Clone)]
pub struct Resource(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    value: u64,
    highest: Option<FencingToken>,
    accepted: u64,
    refused: u64,
    /// The longest that a request or a reply travels.
    delay: Duration,
    /// Of the calls, per mille.
    failures: u64,
}

/// Why a resource did not do what it was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// It has seen a newer token.
    #[error("the token is older than one that was seen")]
    Stale,
    /// It was not done, for a reason that has nothing to do with locks.
    #[error("the resource failed, and nothing was written")]
    Failed,
}

impl Resource {
    pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            state: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The number as it is now, for checks: no client asks for it this way.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.state().value
    }

    /// How many writes it took.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.state().accepted
    }

    /// How many writes it refused because their token was old.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.state().refused
    }

    /// How far off it is, and how many of a thousand calls fail.
    pub(crate) fn place(&self, delay: Duration, failures: u64) {
        let mut state = self.state();
        (state.delay, state.failures) = (delay, failures);
    }

    async fn travel(&self, node: &Node) {
        let delay = self.state().delay;
        let way = node.runtime().jitter(delay);
        if !way.is_zero() {
            node.sleep(way).await;
        }
    }

    fn fails(&self, node: &Node) -> bool {
        let failures = self.state().failures;
        failures > 0 && node.runtime().random_below(1000) + failures >= 1000
    }

    /// Reads the number.
    ///
    /// # Errors
    ///
    /// `Failed`, where the run has failures of resources.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn read(&self, node: &Node) -> Result<u64, ResourceError> {
        self.travel(node).await;
        let answer = self.show(node, None);
        self.travel(node).await;
        answer
    }

    /// Reads the number, unless a newer token was seen; from then on older ones are refused.
    ///
    /// Whoever writes what depends on a read has to show the token with both: a write alone may come
    /// between the read and the write of the next holder.
    ///
    /// # Errors
    ///
    /// `Stale` when a newer token was seen; `Failed`, where the run has failures of resources.
    ///
    /// # Cancel safety
    ///
    /// The token may have been seen although the future was dropped.
    pub async fn read_fenced(
        &self,
        node: &Node,
        token: FencingToken,
    ) -> Result<u64, ResourceError> {
        self.travel(node).await;
        let answer = self.show(node, Some(token));
        self.travel(node).await;
        answer
    }

    /// Writes a number, whoever has the lock by the time it arrives.
    ///
    /// # Errors
    ///
    /// `Failed`, where the run has failures of resources.
    ///
    /// # Cancel safety
    ///
    /// It may have been written although the future was dropped.
    pub async fn write(&self, node: &Node, value: u64) -> Result<(), ResourceError> {
        self.travel(node).await;
        let answer = self.take(node, value, None);
        self.travel(node).await;
        answer
    }

    /// Writes a number, unless a newer token was seen.
    ///
    /// # Errors
    ///
    /// `Stale` when a newer token was seen; `Failed`, where the run has failures of resources.
    ///
    /// # Cancel safety
    ///
    /// It may have been written although the future was dropped.
    pub async fn write_fenced(
        &self,
        node: &Node,
        value: u64,
        token: FencingToken,
    ) -> Result<(), ResourceError> {
        self.travel(node).await;
        let answer = self.take(node, value, Some(token));
        self.travel(node).await;
        answer
    }

    /// Adds one at this very moment, with a token.
    pub(crate) fn touch(&self, node: &Node, token: FencingToken) -> Result<(), ResourceError> {
        let value = self.value() + 1;
        self.take(node, value, Some(token))
    }

    fn show(&self, node: &Node, token: Option<FencingToken>) -> Result<u64, ResourceError> {
        if self.fails(node) {
            return Err(ResourceError::Failed);
        }
        let mut state = self.state();
        if token.is_some() && token < state.highest {
            state.refused += 1;
            return Err(ResourceError::Stale);
        }
        state.highest = state.highest.max(token);
        Ok(state.value)
    }

    fn take(
        &self,
        node: &Node,
        value: u64,
        token: Option<FencingToken>,
    ) -> Result<(), ResourceError> {
        if self.fails(node) {
            return Err(ResourceError::Failed);
        }
        let mut state = self.state();
        let accepted = token.is_none() || token >= state.highest;
        if accepted {
            state.value = value;
            state.highest = state.highest.max(token);
            state.accepted += 1;
        } else {
            state.refused += 1;
        }
        drop(state);
        self.note(node.lane(), node, token, accepted);
        accepted.then_some(()).ok_or(ResourceError::Stale)
    }

    fn note(&self, lane: &Lane, node: &Node, token: Option<FencingToken>, accepted: bool) {
        let what = What::Wrote {
            resource: Arc::clone(&self.0.name),
            token,
            accepted,
        };
        node.chronicle().note(lane, what);
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("name", &self.0.name)
            .field("state", &*self.state())
            .finish_non_exhaustive()
    }
}
