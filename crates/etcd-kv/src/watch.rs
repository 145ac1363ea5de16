use crate::key::{Header, KeyRange, KeyValue};
use crate::stream::KvStream;

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
pub type WatchStream = KvStream<WatchResponse>;

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
