use etcd_kv::{Consistency, RangeRequest, Txn, TxnResponse};
use lock_spi::{FencingToken, LockKey, Result};

use super::Operation;
use super::reply::Replies;
use crate::codec::{KeySpace, LockEntry};

/// Reads what people want to know of a key, from whichever member answers: it works without a
/// leader too, and may be out of date.
#[derive(Debug)]
pub(crate) struct Peek<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) key: &'a LockKey,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Peeked {
    pub(crate) lock: Option<LockEntry>,
    pub(crate) floor: Option<FencingToken>,
    pub(crate) waiters: u64,
}

impl Operation for Peek<'_> {
    type Reply = Peeked;

    fn txn(&self) -> Txn {
        let waiters = RangeRequest {
            count_only: true,
            ..RangeRequest::prefix(self.keys.queue(self.key))
        };
        let reads = [
            RangeRequest::key(self.keys.lock(self.key)),
            RangeRequest::key(self.keys.floor(self.key)),
            waiters,
        ];
        Txn::default().then(reads.map(|read| {
            RangeRequest {
                consistency: Consistency::Serializable,
                ..read
            }
            .into()
        }))
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Peeked> {
        let mut replies = Replies::of(answer);
        Ok(Peeked {
            lock: replies.lock()?,
            floor: replies.floor()?,
            waiters: replies.range()?.count,
        })
    }
}
