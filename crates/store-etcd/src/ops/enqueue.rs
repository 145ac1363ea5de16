use etcd_kv::{Compare, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::reply::{Refusal, Replies};
use super::wish::Wish;
use crate::codec::{LockEntry, TicketValue, Value};

/// Takes a place at the end of the queue.
#[derive(Debug)]
pub(crate) struct Enqueue<'a> {
    pub(crate) wish: Wish<'a>,
    pub(crate) epoch: i64,
    pub(crate) meta: i64,
    pub(crate) value: &'a TicketValue,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum EnqueueReply {
    Placed { place: i64, lock: Option<LockEntry> },
    Refused(Box<Refusal>),
}

impl Operation for Enqueue<'_> {
    type Reply = EnqueueReply;

    fn txn(&self) -> Txn {
        let Self { wish, .. } = self;
        Txn::when([
            Compare::mod_revision(wish.epoch(), self.epoch),
            Compare::mod_revision(wish.keys.meta(), self.meta),
            Compare::create_revision(wish.ticket(), 0),
        ])
        .then([
            wish.put(wish.ticket(), self.value.encode()),
            wish.get_lock(),
        ])
        .otherwise(wish.get_refusal(true))
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<EnqueueReply> {
        let succeeded = answer.succeeded;
        let mut replies = Replies::of(answer);
        if succeeded {
            replies.write()?;
            return Ok(EnqueueReply::Placed {
                place: replies.header.revision,
                lock: replies.lock()?,
            });
        }
        Ok(EnqueueReply::Refused(replies.refusal(true)?))
    }
}
