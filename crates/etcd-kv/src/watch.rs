use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::error::KvError;
use crate::key::{Header, KeyRange, KeyValue};

/// Watches keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WatchRequest {
    /// Which.
    pub range: KeyRange,
    /// From this revision on; `None` for everything after the watch was made.
    pub start: Option<i64>,
    /// Tell what was there before.
    pub prev_kv: bool,
}

/// What changed in one revision, or several.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WatchResponse {
    /// Of the answer.
    pub header: Header,
    /// The changes in revision order; all of one revision come in one response.
    pub events: Vec<WatchEvent>,
}

/// One change of one key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WatchEvent {
    /// What happened.
    pub kind: EventKind,
    /// The key as it is now; of a deleted key, only its name and the revision of the deletion.
    pub kv: KeyValue,
    /// The key as it was, if asked for.
    pub prev_kv: Option<KeyValue>,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventKind {
    /// It was deleted, by whatever means.
    Delete,
    /// It was written.
    Put,
}

/// Yields what changes; it ends after its first error. Dropped, the watch is removed.
///
/// One that falls behind compaction ends with
/// [`KvErrorKind::Compacted`](crate::KvErrorKind::Compacted): read again, and watch from there.
pub struct WatchStream(Pin<Box<dyn Stream<Item = Result<WatchResponse, KvError>> + Send>>);

impl WatchRequest {
    /// Watches a range from now on, without previous values.
    #[must_use]
    pub const fn new(range: KeyRange) -> Self {
        Self {
            range,
            start: None,
            prev_kv: false,
        }
    }
}

impl WatchStream {
    /// Wraps a stream.
    pub fn new(
        stream: impl Stream<Item = Result<WatchResponse, KvError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(stream))
    }
}

impl Stream for WatchStream {
    type Item = Result<WatchResponse, KvError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").finish_non_exhaustive()
    }
}
