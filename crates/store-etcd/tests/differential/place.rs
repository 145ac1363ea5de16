//! Moves a step to keys and leases of its own, so that many runs share one server.

use bytes::Bytes;
use etcd_kv::{Compare, DeleteRequest, KeyRange, Lease, LeaseId, Op, PutRequest, Target, Txn};

use crate::steps::Step;

/// Longer than any run.
const TTL: i64 = 1000;
/// More than a run has.
const LEASES: i64 = 10;

/// Where a run takes place.
pub(crate) struct Place {
    run: i64,
    prefix: String,
}

impl Place {
    pub(crate) fn of(run: i64) -> Self {
        let prefix = format!("run-{run}/");
        Self { run, prefix }
    }

    /// Every key that a step writes.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Bytes> {
        let keys = ["a", "aa", "ab", "b", "b\u{7f}", "c"];
        keys.into_iter().map(|key| self.joined(key.as_bytes()))
    }

    /// The step in this place; `None` of one that needs a clock that waits for it.
    pub(crate) fn take_in(&self, mut step: Step) -> Option<Step> {
        match &mut step {
            Step::Advance { .. }
            | Step::KeepAlive { .. }
            | Step::ReadKeepAlive(_)
            | Step::CloseKeepAlive(_) => return None,
            Step::CloseWatch(_) | Step::Compact(_) | Step::ReadWatch(_) => {}
            Step::Delete(request) => self.range(&mut request.range),
            Step::LeaseGrant { id, ttl } => {
                self.lease(id);
                *ttl += TTL;
            }
            Step::LeaseKeepAliveOnce(id) | Step::LeaseRevoke(id) | Step::LeaseTimeToLive(id) => {
                self.lease(id);
            }
            Step::Put(request) => self.put(request),
            Step::Range(request) => self.range(&mut request.range),
            Step::Txn(txn) => self.txn(txn),
            Step::Watch(request) => self.range(&mut request.range),
        }
        Some(step)
    }

    fn joined(&self, key: &[u8]) -> Bytes {
        [self.prefix.as_bytes(), key].concat().into()
    }

    /// What is empty stays so, for it is refused.
    fn key(&self, key: &mut Bytes) {
        if !key.is_empty() {
            *key = self.joined(key);
        }
    }

    fn range(&self, range: &mut KeyRange) {
        match range {
            KeyRange::Key(key) => self.key(key),
            KeyRange::Prefix(prefix) => *prefix = self.joined(prefix),
            KeyRange::Span { start, end } => {
                self.key(start);
                *end = self.joined(end);
            }
        }
    }

    fn lease(&self, id: &mut LeaseId) {
        id.0 += self.run * LEASES;
    }

    fn put(&self, request: &mut PutRequest) {
        self.key(&mut request.key);
        if let Lease::Attached(id) = &mut request.lease {
            self.lease(id);
        }
    }

    fn txn(&self, txn: &mut Txn) {
        for Compare { range, target, .. } in &mut txn.when {
            self.range(range);
            if let Target::Lease(Some(id)) = target {
                self.lease(id);
            }
        }
        for op in txn.then.iter_mut().chain(&mut txn.otherwise) {
            match op {
                Op::Delete(DeleteRequest { range, .. }) => self.range(range),
                Op::Put(request) => self.put(request),
                Op::Range(request) => self.range(&mut request.range),
            }
        }
    }
}
