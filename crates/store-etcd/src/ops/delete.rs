use etcd_kv::{Compare, DeleteRequest, KeyValue, Txn, TxnResponse};
use lock_spi::{FencingToken, LockKey, Result, SessionId};

use super::Operation;
use super::reply::Replies;
use super::wish::{get, lease};
use crate::codec::{KeySpace, revision};

/// Ends exactly the grant that the token names.
#[derive(Debug)]
pub(crate) struct Delete<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) key: &'a LockKey,
    pub(crate) token: FencingToken,
    pub(crate) session: SessionId,
    pub(crate) meta: i64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum DeleteReply {
    /// This call ended it.
    Ended,
    /// It does not stand.
    Gone,
    /// It may stand, but the state of the namespace has changed.
    MetaChanged(Option<KeyValue>),
}

impl Operation for Delete<'_> {
    type Reply = DeleteReply;

    fn txn(&self) -> Txn {
        let lock = self.keys.lock(self.key);
        Txn::when([
            Compare::mod_revision(lock.clone(), revision(self.token)),
            Compare::lease(lock.clone(), lease(self.session)),
            Compare::mod_revision(self.keys.meta(), self.meta),
        ])
        .then([DeleteRequest::key(lock.clone()).into()])
        .otherwise([get(lock), get(self.keys.meta())])
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<DeleteReply> {
        if answer.succeeded {
            return Ok(DeleteReply::Ended);
        }
        let mut replies = Replies::of(answer);
        let lock = replies.kv()?;
        let meta = replies.kv()?;
        let stands = lock.is_some_and(|kv| {
            kv.mod_revision == revision(self.token) && kv.lease == Some(lease(self.session))
        });
        let meta_changed = meta.as_ref().map(|kv| kv.mod_revision) != Some(self.meta);
        Ok(if stands && meta_changed {
            DeleteReply::MetaChanged(meta)
        } else {
            DeleteReply::Gone
        })
    }
}
