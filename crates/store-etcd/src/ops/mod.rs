//! Operations are values: each is one transaction, built by a pure function, with the rules for its
//! replies beside it. `Core::execute` sends them; a dispatcher could send many in one round trip.
//!
//! All are flat. Nothing outside this module deletes, and what deletes here compares first or names
//! what is unique to one attempt or session.

mod abandon;
mod adopt;
mod bump;
mod close;
mod confirm;
mod delete;
mod enqueue;
mod grant;
mod look;
mod meta;
mod open;
mod peek;
mod recover;
mod reply;
mod revoke;
mod take;
mod verify;
mod wish;

pub(crate) use abandon::{Abandon, AbandonForm};
pub(crate) use adopt::{Adopt, AdoptReply};
pub(crate) use bump::Bump;
pub(crate) use close::Close;
pub(crate) use confirm::Confirm;
pub(crate) use delete::{Delete, DeleteReply};
pub(crate) use enqueue::{Enqueue, EnqueueReply};
pub(crate) use grant::Grant;
pub(crate) use look::{Look, Part, QUEUE_LOOKED_AT, Queued, Ticket};
pub(crate) use meta::WriteMeta;
pub(crate) use open::{Open, OpenReply};
pub(crate) use peek::Peek;
pub(crate) use recover::Recover;
#[cfg(test)]
pub(crate) use reply::Sight;
pub(crate) use reply::{Claim, Minted, Refusal};
pub(crate) use revoke::{Revoke, Survey, Surveyed};
pub(crate) use take::Take;
pub(crate) use verify::Verify;
pub(crate) use wish::{Wish, lease};

#[cfg(test)]
mod tests;

use etcd_kv::{Txn, TxnResponse};
use lock_spi::Result;

/// One transaction and what its replies mean.
pub(crate) trait Operation {
    /// What a reply says.
    type Reply;

    /// The transaction.
    fn txn(&self) -> Txn;

    /// Reads a reply. Errors have effect `None`: whoever sent it knows whether the branch taken
    /// writes.
    fn read_reply(&self, answer: TxnResponse) -> Result<Self::Reply>;
}
