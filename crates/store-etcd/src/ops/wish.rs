use bytes::Bytes;
use etcd_kv::{LeaseId, Op, PutRequest, RangeRequest};
use lock_spi::{AttemptId, LockKey, SessionId};

use crate::codec::KeySpace;

/// Who wants what: an attempt of a session for a key, and the names that go with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) key: &'a LockKey,
    pub(crate) session: SessionId,
    pub(crate) attempt: AttemptId,
}

impl Wish<'_> {
    pub(super) fn lock(&self) -> Bytes {
        self.keys.lock(self.key)
    }

    pub(super) fn ticket(&self) -> Bytes {
        self.keys.ticket(self.key, self.attempt)
    }

    pub(super) fn epoch(&self) -> Bytes {
        self.keys.epoch(self.session)
    }

    pub(super) fn session(&self) -> Bytes {
        self.keys.session(self.session)
    }

    /// Writes something that ends with the session.
    pub(super) fn put(&self, key: Bytes, value: Bytes) -> Op {
        PutRequest::new(key, value)
            .with_lease(lease(self.session))
            .into()
    }

    pub(super) fn get_lock(&self) -> Op {
        get(self.lock())
    }

    pub(super) fn get_floor(&self) -> Op {
        get(self.keys.floor(self.key))
    }

    pub(super) fn get_ticket(&self) -> Op {
        get(self.ticket())
    }

    /// Reads what a refusal is made of, in its order.
    pub(super) fn get_refusal(&self, with_epoch: bool) -> impl Iterator<Item = Op> {
        let epoch = with_epoch.then(|| get(self.epoch()));
        let meta = get(self.keys.meta());
        epoch.into_iter().chain([meta]).chain(self.get_sight())
    }

    /// Reads what a sight is made of, in its order.
    pub(super) fn get_sight(&self) -> [Op; 3] {
        [self.get_lock(), self.get_floor(), self.get_ticket()]
    }
}

pub(super) fn get(key: Bytes) -> Op {
    RangeRequest::key(key).into()
}

/// A session is a lease of the same id.
pub(crate) fn lease(session: SessionId) -> LeaseId {
    LeaseId(session.as_i64())
}
