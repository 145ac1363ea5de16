//! What a backup holds, keys and leases, and the writes to it.

use std::sync::Arc;

use etcd_kv::{
    DeleteRequest, DeleteResponse, Header, KeyValue, KvError, Lease, LeaseId, Op, OpResponse,
    PutRequest, PutResponse, RangeRequest, RangeResponse,
};

use crate::error;
use crate::keyspace::Keyspace;
use crate::lease::Leases;

/// The keys and the leases.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) keyspace: Keyspace,
    pub(crate) leases: Leases,
}

/// A write under way: whatever it changes, it changes in one revision.
pub(crate) struct Write<'a> {
    database: &'a mut Database,
    revision: i64,
    changed: bool,
}

impl Database {
    pub(crate) fn new() -> Self {
        Self {
            keyspace: Keyspace::new(),
            leases: Leases::default(),
        }
    }

    /// Whether an operation can be done in the present state; one that can does not fail.
    pub(crate) fn check(&self, op: &Op) -> Result<(), KvError> {
        match op {
            Op::Delete(_) => Ok(()),
            Op::Put(request) => self.check_put(request),
            Op::Range(request) => self.keyspace.check_readable(request.revision),
        }
    }

    pub(crate) fn check_put(&self, request: &PutRequest) -> Result<(), KvError> {
        match request.lease {
            Lease::Attached(id) if !self.leases.contains(id) => Err(error::lease_not_found()),
            Lease::Kept if self.keyspace.get(&request.key).is_none() => {
                Err(error::invalid("key not found"))
            }
            Lease::Attached(_) | Lease::Detached | Lease::Kept => Ok(()),
        }
    }

    pub(crate) fn begin(&mut self) -> Write<'_> {
        let revision = self.keyspace.revision().saturating_add(1);
        Write {
            database: self,
            revision,
            changed: false,
        }
    }
}

impl Write<'_> {
    /// Does an operation that was checked.
    pub(crate) fn apply(&mut self, op: &Op) -> OpResponse {
        match op {
            Op::Delete(request) => OpResponse::Delete(self.delete(request)),
            Op::Put(request) => OpResponse::Put(self.put(request)),
            Op::Range(request) => OpResponse::Range(self.range(request)),
        }
    }

    pub(crate) fn put(&mut self, request: &PutRequest) -> PutResponse {
        let PutRequest {
            key,
            value,
            lease,
            prev_kv,
        } = request;
        let Database { keyspace, leases } = &mut *self.database;
        let bound = keyspace.get(key).and_then(|kv| kv.lease);
        let lease = match *lease {
            Lease::Attached(id) => Some(id),
            Lease::Detached => None,
            Lease::Kept => bound,
        };
        leases.rebind(key, bound, lease);
        let before = keyspace.put(self.revision, key, value, lease);
        self.changed = true;
        PutResponse {
            header: self.header(),
            prev_kv: before.filter(|_| *prev_kv).map(|kv| (*kv).clone()),
        }
    }

    pub(crate) fn delete(&mut self, request: &DeleteRequest) -> DeleteResponse {
        let DeleteRequest { range, prev_kv } = request;
        let Database { keyspace, leases } = &mut *self.database;
        let found: Vec<Arc<KeyValue>> = keyspace.within(range).cloned().collect();
        for kv in &found {
            leases.rebind(&kv.key, kv.lease, None);
            drop(keyspace.delete(self.revision, &kv.key));
        }
        self.changed |= !found.is_empty();
        let deleted = u64::try_from(found.len()).unwrap_or(u64::MAX);
        let prev_kvs = if *prev_kv {
            found.iter().map(|kv| (**kv).clone()).collect()
        } else {
            Vec::new()
        };
        DeleteResponse {
            header: self.header(),
            deleted,
            prev_kvs,
        }
    }

    /// Reads; without a revision of its own, it sees what was written before it.
    fn range(&self, request: &RangeRequest) -> RangeResponse {
        RangeResponse {
            header: self.header(),
            ..self.database.keyspace.range(request)
        }
    }

    /// Ends a lease and deletes its keys; `false` for an unknown lease.
    pub(crate) fn end_lease(&mut self, id: LeaseId) -> bool {
        let Database { keyspace, leases } = &mut *self.database;
        let Some(keys) = leases.remove(id) else {
            return false;
        };
        for key in &keys {
            self.changed |= keyspace.delete(self.revision, key).is_some();
        }
        true
    }

    /// Makes the changes the present; `true` if there are any.
    pub(crate) const fn commit(self) -> bool {
        if self.changed {
            self.database.keyspace.advance(self.revision);
        }
        self.changed
    }

    /// What etcd puts into the answers inside a transaction: the revision so far, nothing else.
    fn header(&self) -> Header {
        let revision = if self.changed {
            self.revision
        } else {
            self.database.keyspace.revision()
        };
        Header {
            revision,
            ..Header::default()
        }
    }
}
