use bytes::Bytes;
use etcd_kv::{Compare, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::reply::{Replies, Sight};
use super::wish::Wish;

/// Raises the session's epoch: every creating request sent before fails from now on, wherever it
/// is still travelling, and the answer shows what it did.
#[derive(Debug)]
pub(crate) struct Bump<'a> {
    pub(crate) wish: Wish<'a>,
}

impl Operation for Bump<'_> {
    /// The new epoch and what the attempt sees; `None` when the session is gone.
    type Reply = Option<(i64, Sight)>;

    fn txn(&self) -> Txn {
        let Self { wish } = self;
        Txn::when([Compare::exists(wish.session())])
            .then(
                [wish.put(wish.epoch(), Bytes::new())]
                    .into_iter()
                    .chain(wish.get_sight()),
            )
            .otherwise([wish.get_lock()])
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Self::Reply> {
        if !answer.succeeded {
            return Ok(None);
        }
        let mut replies = Replies::of(answer);
        replies.write()?;
        Ok(Some((replies.header.revision, replies.sight()?)))
    }
}
