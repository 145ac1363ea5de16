//! The log of revisions: what watchers are shown, and how the past is read.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use etcd_kv::{EventKind, KeyValue, WatchEvent};

/// One change of one key.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Delete {
        before: Arc<KeyValue>,
    },
    Put {
        now: Arc<KeyValue>,
        before: Option<Arc<KeyValue>>,
    },
}

impl Change {
    pub(crate) fn key(&self) -> &Bytes {
        match self {
            Self::Delete { before } => &before.key,
            Self::Put { now, .. } => &now.key,
        }
    }

    /// The key as it was before the change.
    pub(crate) fn before(&self) -> Option<&Arc<KeyValue>> {
        match self {
            Self::Delete { before } => Some(before),
            Self::Put { before, .. } => before.as_ref(),
        }
    }
}

/// All changes in the order in which they were made, down to the compact revision.
///
/// The changes *of* the compact revision are kept: a watch may start at it.
#[derive(Clone, Debug)]
pub(crate) struct History {
    compact_revision: i64,
    changes: VecDeque<(i64, Change)>,
}

impl History {
    /// Nothing has happened, and nothing was compacted.
    pub(crate) const fn new() -> Self {
        Self {
            compact_revision: -1,
            changes: VecDeque::new(),
        }
    }

    /// The oldest revision that can still be read; -1 before the first compaction.
    pub(crate) const fn compact_revision(&self) -> i64 {
        self.compact_revision
    }

    pub(crate) fn push(&mut self, revision: i64, change: Change) {
        self.changes.push_back((revision, change));
    }

    /// The changes made in `revision` and later, in order.
    pub(crate) fn since(
        &self,
        revision: i64,
    ) -> impl DoubleEndedIterator<Item = (i64, &Change)> + use<'_> {
        let first = self.changes.partition_point(|&(made, _)| made < revision);
        self.changes
            .range(first..)
            .map(|(made, change)| (*made, change))
    }

    /// The changes made in `revision`, in order.
    pub(crate) fn at(&self, revision: i64) -> impl Iterator<Item = &Change> + use<'_> {
        self.since(revision)
            .take_while(move |&(made, _)| made == revision)
            .map(|(_, change)| change)
    }

    /// What a watcher is told of a change.
    pub(crate) fn event(&self, revision: i64, change: &Change, prev_kv: bool) -> WatchEvent {
        // What stood before the compact revision can no longer be read, so it is not told either.
        let told = prev_kv && revision > self.compact_revision;
        let before = self.before(revision, change).filter(|_| told);
        let prev_kv = before.map(|kv| (**kv).clone());
        match change {
            Change::Delete { before } => WatchEvent {
                kind: EventKind::Delete,
                kv: KeyValue {
                    key: before.key.clone(),
                    mod_revision: revision,
                    ..KeyValue::default()
                },
                prev_kv,
            },
            Change::Put { now, .. } => WatchEvent {
                kind: EventKind::Put,
                kv: (**now).clone(),
                prev_kv,
            },
        }
    }

    /// The key as it was before the revision, which may have changed it more than once. Of a key
    /// that is made, nothing is told.
    fn before<'a>(&'a self, revision: i64, change: &'a Change) -> Option<&'a Arc<KeyValue>> {
        let before = change.before()?;
        if before.mod_revision < revision {
            return Some(before);
        }
        let mut changes = self.at(revision);
        changes
            .find(|first| first.key() == change.key())
            .and_then(Change::before)
    }

    pub(crate) fn compact(&mut self, revision: i64) {
        self.compact_revision = revision;
        let kept = self.changes.partition_point(|&(made, _)| made < revision);
        self.changes.drain(..kept);
    }
}
