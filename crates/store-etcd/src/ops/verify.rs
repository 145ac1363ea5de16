use etcd_kv::{KeyValue, Txn, TxnResponse};
use lock_spi::{LockKey, Result, SessionId};

use super::Operation;
use super::reply::Replies;
use super::wish::get;
use crate::codec::KeySpace;

/// Reads whether a session stands, and the locks that are asked for with it. Sent after the answer
/// to a keepalive, it is what the keepalive is believed by.
#[derive(Debug)]
pub(crate) struct Verify<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) session: SessionId,
    /// At most 64.
    pub(crate) locks: &'a [LockKey],
}

/// What it shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Verified {
    pub(crate) session: Option<KeyValue>,
    pub(crate) meta: Option<KeyValue>,
    /// In the order in which they were asked for.
    pub(crate) locks: Vec<Option<KeyValue>>,
}

impl Operation for Verify<'_> {
    type Reply = Verified;

    fn txn(&self) -> Txn {
        let session = get(self.keys.session(self.session));
        let locks = self.locks.iter().map(|key| get(self.keys.lock(key)));
        Txn::default().then([session, get(self.keys.meta())].into_iter().chain(locks))
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Verified> {
        let mut replies = Replies::of(answer);
        let session = replies.kv()?;
        let meta = replies.kv()?;
        let locks = self.locks.iter().map(|_| replies.kv());
        Ok(Verified {
            session,
            meta,
            locks: locks.collect::<Result<_>>()?,
        })
    }
}
