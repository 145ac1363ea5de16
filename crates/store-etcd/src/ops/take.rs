use etcd_kv::{Compare, DeleteRequest, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::look::Ticket;
use super::reply::{Claim, Replies};
use super::wish::Wish;
use crate::codec::{LockValue, Value};

/// Turns the place of the first in line into a grant; may be repeated, for a ticket is single-use.
///
/// It compares no range: once a read has shown that no older ticket exists, that stays true. With
/// tickets to skip it removes those as well, exactly as they were seen.
#[derive(Debug)]
pub(crate) struct Take<'a> {
    pub(crate) wish: Wish<'a>,
    pub(crate) meta: i64,
    pub(crate) place: i64,
    pub(crate) skip: &'a [Ticket],
    pub(crate) value: &'a LockValue,
}

impl Operation for Take<'_> {
    type Reply = Claim;

    fn txn(&self) -> Txn {
        let Self { wish, .. } = self;
        let as_seen =
            |ticket: &Ticket| Compare::create_revision(ticket.stored.clone(), ticket.place);
        let removed = self.skip.iter().map(|ticket| ticket.stored.clone());
        let removals = removed.map(|stored| DeleteRequest::key(stored).into());
        Txn::when(
            [
                Compare::mod_revision(wish.keys.meta(), self.meta),
                Compare::create_revision(wish.lock(), 0),
                Compare::create_revision(wish.ticket(), self.place),
            ]
            .into_iter()
            .chain(self.skip.iter().map(as_seen)),
        )
        .then(
            [
                wish.put(wish.lock(), self.value.encode()),
                DeleteRequest::key(wish.ticket()).into(),
                wish.get_lock(),
                wish.get_floor(),
            ]
            .into_iter()
            .chain(removals),
        )
        .otherwise(wish.get_refusal(false))
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Claim> {
        let succeeded = answer.succeeded;
        let mut replies = Replies::of(answer);
        if succeeded {
            replies.write()?;
            replies.write()?;
            return Ok(Claim::Granted(replies.minted()?));
        }
        Ok(Claim::Refused(replies.refusal(false)?))
    }
}
