use etcd_kv::{Compare, Order, RangeRequest, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::look::Ticket;
use super::reply::{Refusal, Replies};
use super::wish::Wish;
use crate::codec::{LockEntry, TicketValue, Value};

/// The own ticket and the one before it.
const LAST_TWO: u32 = 2;

/// Takes a place at the end of the queue, and looks who is right before it.
#[derive(Debug)]
pub(crate) struct Enqueue<'a> {
    pub(crate) wish: Wish<'a>,
    pub(crate) epoch: i64,
    pub(crate) meta: i64,
    pub(crate) value: &'a TicketValue,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum EnqueueReply {
    Placed {
        place: i64,
        lock: Option<LockEntry>,
        /// Whoever was last in line until then.
        before: Option<Ticket>,
    },
    Refused(Box<Refusal>),
}

impl Operation for Enqueue<'_> {
    type Reply = EnqueueReply;

    fn txn(&self) -> Txn {
        let Self { wish, .. } = self;
        let last_two = RangeRequest {
            limit: Some(LAST_TWO),
            order: Order::NewestFirst,
            keys_only: true,
            ..RangeRequest::prefix(wish.keys.queue(wish.key))
        };
        Txn::when([
            Compare::mod_revision(wish.epoch(), self.epoch),
            Compare::mod_revision(wish.keys.meta(), self.meta),
            Compare::create_revision(wish.ticket(), 0),
        ])
        .then([
            wish.put(wish.ticket(), self.value.encode()),
            wish.get_lock(),
            last_two.into(),
        ])
        .otherwise(wish.get_refusal(true))
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<EnqueueReply> {
        let succeeded = answer.succeeded;
        let mut replies = Replies::of(answer);
        if succeeded {
            replies.write()?;
            let lock = replies.lock()?;
            let mut others = replies.range()?.kvs.into_iter();
            let before = others.find(|kv| kv.key != self.wish.ticket());
            return Ok(EnqueueReply::Placed {
                place: replies.header.revision,
                lock,
                before: before.map(|kv| Ticket {
                    stored: kv.key,
                    place: kv.create_revision,
                }),
            });
        }
        Ok(EnqueueReply::Refused(replies.refusal(true)?))
    }
}
