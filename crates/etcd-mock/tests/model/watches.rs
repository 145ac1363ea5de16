//! The naive model's watches: what is to show is looked up when it is read.

use bytes::Bytes;
use etcd_kv::{EventKind, Header, KeyValue, KvErrorKind, WatchEvent, WatchRequest, WatchResponse};

use crate::naive::Naive;
use crate::rules::within;
use crate::steps::Answer;

/// An open watch: the first revision that it has not shown, and why it ends if it does.
pub(crate) struct WatchState {
    pub(crate) request: WatchRequest,
    pub(crate) next: i64,
    pub(crate) cancelled: Option<i64>,
}

impl Naive {
    pub(crate) fn compact(&mut self, revision: i64) -> Result<(), KvErrorKind> {
        if revision <= self.compacted {
            let compact_revision = self.compacted;
            return Err(KvErrorKind::Compacted { compact_revision });
        }
        if revision > self.revision() {
            return Err(KvErrorKind::FutureRevision);
        }
        self.compacted = revision;
        let mut watches = std::mem::take(&mut self.watches);
        for watch in watches.iter_mut().flatten() {
            let lags = (watch.next..revision).any(|missed| !self.events(watch, missed).is_empty());
            if lags && watch.cancelled.is_none() {
                watch.cancelled = Some(revision);
            }
        }
        self.watches = watches;
        Ok(())
    }

    fn events(&self, watch: &WatchState, revision: i64) -> Vec<WatchEvent> {
        let WatchRequest { range, prev_kv, .. } = &watch.request;
        let Some(changed) = usize::try_from(revision)
            .ok()
            .and_then(|revision| self.changed.get(revision))
        else {
            return Vec::new();
        };
        let event = |(key, after): &(Bytes, Option<KeyValue>)| {
            let before = self.at(revision - 1).get(key).cloned();
            let made = after.as_ref().is_some_and(|kv| kv.version == 1);
            let told = *prev_kv && revision > self.compacted && !made;
            let (kind, kv) = match after {
                Some(kv) => (EventKind::Put, kv.clone()),
                None => {
                    let gone = KeyValue {
                        key: key.clone(),
                        mod_revision: revision,
                        ..KeyValue::default()
                    };
                    (EventKind::Delete, gone)
                }
            };
            let prev_kv = if told { before } else { None };
            WatchEvent { kind, kv, prev_kv }
        };
        let watched = changed.iter().filter(|(key, _)| within(range, key));
        watched.map(event).collect()
    }

    pub(crate) fn read_watch(&mut self, at: usize) -> Answer {
        let Some(Some(watch)) = self.watches.get(at) else {
            return Answer::Done;
        };
        if let Some(compact_revision) = watch.cancelled {
            self.watches[at] = None;
            let end = KvErrorKind::Compacted { compact_revision };
            return Answer::Events(vec![Err(end)]);
        }
        let mut seen = Vec::new();
        for revision in watch.next..=self.revision() {
            let events = self.events(watch, revision);
            if !events.is_empty() {
                let header = Header {
                    revision,
                    ..self.identity
                };
                seen.push(Ok(WatchResponse { header, events }));
            }
        }
        let next = watch.next.max(self.revision() + 1);
        self.watches[at]
            .iter_mut()
            .for_each(|watch| watch.next = next);
        Answer::Events(seen)
    }
}
