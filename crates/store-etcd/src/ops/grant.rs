use etcd_kv::{Compare, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::reply::{Claim, Replies};
use super::wish::Wish;
use crate::codec::{LockValue, Value};

/// Takes a free key that nobody waits for. It never queues: a refused one leaves nothing.
#[derive(Debug)]
pub(crate) struct Grant<'a> {
    pub(crate) wish: Wish<'a>,
    pub(crate) epoch: i64,
    pub(crate) meta: i64,
    pub(crate) value: &'a LockValue,
}

impl Operation for Grant<'_> {
    type Reply = Claim;

    fn txn(&self) -> Txn {
        let Self { wish, .. } = self;
        Txn::when([
            Compare::mod_revision(wish.epoch(), self.epoch),
            Compare::mod_revision(wish.keys.meta(), self.meta),
            Compare::create_revision(wish.lock(), 0),
            Compare::no_key_below(wish.keys.queue(wish.key)),
        ])
        .then([
            wish.put(wish.lock(), self.value.encode()),
            wish.get_lock(),
            wish.get_floor(),
        ])
        .otherwise(wish.get_refusal(true))
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Claim> {
        let succeeded = answer.succeeded;
        let mut replies = Replies::of(answer);
        if succeeded {
            replies.write()?;
            return Ok(Claim::Granted(replies.minted()?));
        }
        Ok(Claim::Refused(replies.refusal(true)?))
    }
}
