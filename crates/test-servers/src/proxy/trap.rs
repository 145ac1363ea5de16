//! Traps: a pattern, and what happens to the connection that it is seen on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a connection is cut, seen from the request that a [`Proxy`](crate::Proxy) was armed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cut {
    /// Before the request: the connection is reset, and the server sees no whole request.
    BeforeRequest,
    /// After the request: it is forwarded, then the client's side is reset without an answer. The
    /// server's side stays open, so that nothing keeps it from carrying the request out.
    AfterRequest,
    /// The answer is swallowed: the request is forwarded, the connection stays open, and nothing
    /// comes back on it any more.
    SwallowAnswer,
}

/// Tells whether what a [`Proxy`](crate::Proxy) was armed for has come. Dropping it disarms nothing.
#[derive(Clone, Debug)]
pub struct Trap {
    sprung: Arc<AtomicBool>,
}

impl Trap {
    pub(super) fn new() -> Self {
        Self {
            sprung: Arc::default(),
        }
    }

    pub(super) fn spring(&self) {
        self.sprung.store(true, Ordering::SeqCst);
    }

    /// Whether a request had the pattern in it.
    #[must_use]
    pub fn has_sprung(&self) -> bool {
        self.sprung.load(Ordering::SeqCst)
    }
}
