//! Watches: cursors into the history.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::Poll;

use bytes::Bytes;
use etcd_kv::{Header, KeyRange, KvError, WatchRequest, WatchResponse};

use crate::error;
use crate::history::History;
use crate::request::StreamId;

/// The open watches, found by what they watch.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    watchers: BTreeMap<StreamId, Watcher>,
    /// Most watches are of one key; a write need not look at all of them.
    of_key: BTreeMap<Bytes, BTreeSet<StreamId>>,
    of_range: BTreeSet<StreamId>,
}

/// The revisions that it has yet to show, not the events themselves: those stay in the history,
/// and when they are compacted first, the watch ends by saying so.
#[derive(Debug)]
struct Watcher {
    range: KeyRange,
    prev_kv: bool,
    start: i64,
    unseen: VecDeque<i64>,
    end: Option<End>,
}

/// Why a watch ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Broken,
    Compacted { compact_revision: i64 },
}

impl Watchers {
    /// Opens a watch; `next` is the first revision that has not been yet.
    pub(crate) fn open(
        &mut self,
        id: StreamId,
        request: &WatchRequest,
        next: i64,
        history: &History,
    ) {
        let WatchRequest {
            range,
            start,
            prev_kv,
        } = request;
        let start = start.filter(|&start| start > 0).unwrap_or(next);
        let mut watcher = Watcher {
            range: range.clone(),
            prev_kv: *prev_kv,
            start,
            unseen: VecDeque::new(),
            end: None,
        };
        let compact_revision = history.compact_revision();
        if start < compact_revision {
            watcher.end = Some(End::Compacted { compact_revision });
        } else {
            for (revision, change) in history.since(start) {
                if range.contains(change.key()) {
                    watcher.note(revision);
                }
            }
        }
        match range {
            KeyRange::Key(key) => {
                self.of_key.entry(key.clone()).or_default().insert(id);
            }
            KeyRange::Prefix(_) | KeyRange::Span { .. } => {
                self.of_range.insert(id);
            }
        }
        drop(self.watchers.insert(id, watcher));
    }

    /// Closes a watch; one that is not open stays so.
    pub(crate) fn close(&mut self, id: StreamId) {
        let Some(Watcher { range, .. }) = self.watchers.remove(&id) else {
            return;
        };
        self.of_range.remove(&id);
        if let KeyRange::Key(key) = range
            && let Some(ids) = self.of_key.get_mut(&key)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.of_key.remove(&key);
            }
        }
    }

    /// Notes that a key changed, and who can read more now.
    pub(crate) fn note(&mut self, key: &Bytes, revision: i64, readable: &mut Vec<StreamId>) {
        let exact = self.of_key.get(key).into_iter().flatten();
        for id in exact.chain(&self.of_range) {
            if let Some(watcher) = self.watchers.get_mut(id)
                && watcher.range.contains(key)
                && watcher.note(revision)
            {
                readable.push(*id);
            }
        }
    }

    /// Ends the watches that have yet to show what is no longer there.
    pub(crate) fn compacted(&mut self, compact_revision: i64, readable: &mut Vec<StreamId>) {
        for (id, watcher) in &mut self.watchers {
            let lags = watcher
                .unseen
                .front()
                .is_some_and(|&revision| revision < compact_revision);
            if lags && watcher.end.is_none() {
                watcher.end = Some(End::Compacted { compact_revision });
                readable.push(*id);
            }
        }
    }

    /// Ends all watches, as a server does that goes away.
    pub(crate) fn break_off(&mut self, readable: &mut Vec<StreamId>) {
        for (id, watcher) in &mut self.watchers {
            watcher.end = Some(End::Broken);
            readable.push(*id);
        }
    }

    /// What a watch shows next; after its error, or if it is not open, nothing any more.
    pub(crate) fn poll(
        &mut self,
        id: StreamId,
        header: Header,
        history: &History,
    ) -> Poll<Option<Result<WatchResponse, KvError>>> {
        let Some(watcher) = self.watchers.get_mut(&id) else {
            return Poll::Ready(None);
        };
        if let Some(end) = watcher.end {
            self.close(id);
            return Poll::Ready(Some(Err(end.into())));
        }
        let Some(revision) = watcher.unseen.pop_front() else {
            return Poll::Pending;
        };
        let events = history
            .at(revision)
            .filter(|change| watcher.range.contains(change.key()))
            .map(|change| history.event(revision, change, watcher.prev_kv))
            .collect();
        let header = Header { revision, ..header };
        Poll::Ready(Some(Ok(WatchResponse { header, events })))
    }

    pub(crate) fn len(&self) -> usize {
        self.watchers.len()
    }
}

impl Watcher {
    /// Notes a revision to show; `false` when it is noted already or not to be shown.
    fn note(&mut self, revision: i64) -> bool {
        let new =
            revision >= self.start && self.end.is_none() && self.unseen.back() != Some(&revision);
        if new {
            self.unseen.push_back(revision);
        }
        new
    }
}

impl From<End> for KvError {
    fn from(end: End) -> Self {
        match end {
            End::Broken => error::stream_broken(),
            End::Compacted { compact_revision } => error::compacted(compact_revision),
        }
    }
}
