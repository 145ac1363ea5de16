//! The keys as they are, and as they were.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use etcd_kv::{KeyRange, KeyValue, KvError, LeaseId, Order, RangeRequest, RangeResponse};

use crate::error;
use crate::history::{Change, History};

/// The keys of the present, the log of how they came to be so, and the revision.
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    revision: i64,
    keys: BTreeMap<Bytes, Arc<KeyValue>>,
    history: History,
}

impl Keyspace {
    pub(crate) const fn new() -> Self {
        Self {
            revision: 1,
            keys: BTreeMap::new(),
            history: History::new(),
        }
    }

    pub(crate) const fn revision(&self) -> i64 {
        self.revision
    }

    pub(crate) const fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Arc<KeyValue>> {
        self.keys.get(key)
    }

    /// The keys of a range as they are now, in byte order.
    pub(crate) fn within<'a>(
        &'a self,
        range: &'a KeyRange,
    ) -> impl Iterator<Item = &'a Arc<KeyValue>> {
        let start: &[u8] = match range {
            KeyRange::Key(key) => key,
            KeyRange::Prefix(prefix) => prefix,
            KeyRange::Span { start, .. } => start,
        };
        self.keys
            .range::<[u8], _>((Bound::Included(start), Bound::Unbounded))
            .map(|(_, kv)| kv)
            .take_while(|kv| range.contains(&kv.key))
    }

    /// Whether the keys of this revision can be read. None, 0 and less mean the present.
    pub(crate) fn check_readable(&self, revision: Option<i64>) -> Result<(), KvError> {
        let compact_revision = self.history.compact_revision();
        match past(revision) {
            Some(revision) if revision > self.revision => Err(error::future_revision()),
            Some(revision) if revision < compact_revision => {
                Err(error::compacted(compact_revision))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Answers a read whose revision can be read; the header is the caller's.
    pub(crate) fn range(&self, request: &RangeRequest) -> RangeResponse {
        match past(request.revision) {
            None => select(request, self.within(&request.range).collect()),
            Some(revision) => select(request, self.within_at(&request.range, revision)),
        }
    }

    /// The keys of a range as they were, by undoing what happened since.
    fn within_at<'a>(&'a self, range: &'a KeyRange, revision: i64) -> Vec<&'a Arc<KeyValue>> {
        let mut found: BTreeMap<&Bytes, &Arc<KeyValue>> =
            self.within(range).map(|kv| (&kv.key, kv)).collect();
        let later = self.history.since(revision.saturating_add(1)).rev();
        for (_, change) in later.filter(|(_, change)| range.contains(change.key())) {
            match change.before() {
                Some(kv) => found.insert(change.key(), kv),
                None => found.remove(change.key()),
            };
        }
        found.into_values().collect()
    }

    /// Writes a key in `revision`; answers with what it was.
    pub(crate) fn put(
        &mut self,
        revision: i64,
        key: &Bytes,
        value: &Bytes,
        lease: Option<LeaseId>,
    ) -> Option<Arc<KeyValue>> {
        let before = self.keys.get(key).cloned();
        let (create_revision, version) = before
            .as_ref()
            .map_or((revision, 0), |kv| (kv.create_revision, kv.version));
        let now = Arc::new(KeyValue {
            key: key.clone(),
            value: value.clone(),
            create_revision,
            mod_revision: revision,
            version: version + 1,
            lease,
        });
        drop(self.keys.insert(key.clone(), Arc::clone(&now)));
        let change = Change::Put {
            now,
            before: before.clone(),
        };
        self.history.push(revision, change);
        before
    }

    /// Deletes a key in `revision`; answers with what it was.
    pub(crate) fn delete(&mut self, revision: i64, key: &[u8]) -> Option<Arc<KeyValue>> {
        let before = self.keys.remove(key)?;
        let change = Change::Delete {
            before: Arc::clone(&before),
        };
        self.history.push(revision, change);
        Some(before)
    }

    /// Makes `revision` the present.
    pub(crate) const fn advance(&mut self, revision: i64) {
        self.revision = revision;
    }

    pub(crate) fn compact(&mut self, revision: i64) -> Result<(), KvError> {
        let compact_revision = self.history.compact_revision();
        if revision <= compact_revision {
            return Err(error::compacted(compact_revision));
        }
        if revision > self.revision {
            return Err(error::future_revision());
        }
        self.history.compact(revision);
        Ok(())
    }

    /// Every key, in byte order.
    pub(crate) fn entries(&self) -> Vec<KeyValue> {
        self.keys.values().map(|kv| (**kv).clone()).collect()
    }
}

fn past(revision: Option<i64>) -> Option<i64> {
    revision.filter(|&revision| revision > 0)
}

/// What of the keys found is answered. As in etcd, a limit of 0 is none.
fn select(request: &RangeRequest, mut found: Vec<&Arc<KeyValue>>) -> RangeResponse {
    let count = found.len();
    let mut response = RangeResponse {
        count: u64::try_from(count).unwrap_or(u64::MAX),
        ..RangeResponse::default()
    };
    if request.count_only {
        return response;
    }
    match request.order {
        Order::Key => {}
        Order::CreateRevision => found.sort_by_key(|kv| kv.create_revision),
        Order::NewestFirst => found.sort_by_key(|kv| Reverse(kv.create_revision)),
    }
    let limit = match request.limit {
        None | Some(0) => count,
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    response.more = count > limit;
    response.kvs = found
        .into_iter()
        .take(limit)
        .map(|kv| {
            let mut kv = (**kv).clone();
            if request.keys_only {
                kv.value = Bytes::new();
            }
            kv
        })
        .collect();
    response
}
