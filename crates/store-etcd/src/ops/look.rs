use bytes::Bytes;
use etcd_kv::{KeyValue, Order, RangeRequest, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::reply::{Replies, Sight};
use super::wish::{Wish, get};

/// So much of a queue is looked at by default: as many as one waiter may skip, and itself.
pub(crate) const QUEUE_LOOKED_AT: u32 = 33;

/// Reads all that an attempt must know to go on; writes nothing and costs no raft entry.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    pub(crate) wish: Wish<'a>,
    pub(crate) part: Part,
}

/// How much of the queue is looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// All tickets.
    All,
    /// So many of the first ones.
    Oldest(u32),
    /// This ticket.
    Only(Bytes),
}

/// What it shows.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Queued {
    pub(crate) meta: Option<KeyValue>,
    /// Whether the attempt's session stands.
    pub(crate) session_stands: bool,
    pub(crate) sight: Sight,
    /// The tickets before the attempt's own, oldest first; `None` when the own one is not among
    /// those that were looked at.
    pub(crate) ahead: Option<Vec<Ticket>>,
    /// Whether there is any of the tickets that were looked at, the attempt's own included.
    pub(crate) anybody: bool,
    /// The oldest of them.
    pub(crate) first: Option<Bytes>,
}

/// A ticket as it was seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ticket {
    pub(crate) stored: Bytes,
    pub(crate) place: i64,
}

impl Operation for Look<'_> {
    type Reply = Queued;

    fn txn(&self) -> Txn {
        let Self { wish, part } = self;
        let all = || RangeRequest::prefix(wish.keys.queue(wish.key));
        let (tickets, limit) = match part {
            Part::All => (all(), None),
            Part::Oldest(count) => (all(), Some(*count)),
            Part::Only(ticket) => (RangeRequest::key(ticket.clone()), None),
        };
        let queue = RangeRequest {
            limit,
            order: Order::CreateRevision,
            keys_only: true,
            ..tickets
        };
        Txn::default().then(
            [get(wish.keys.meta()), get(wish.session())]
                .into_iter()
                .chain(wish.get_sight())
                .chain([queue.into()]),
        )
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Queued> {
        let mut replies = Replies::of(answer);
        let meta = replies.kv()?;
        let session_stands = replies.kv()?.is_some();
        let sight = replies.sight()?;
        let queue = replies.range()?.kvs;
        let own = self.wish.ticket();
        let at = queue.iter().position(|kv| kv.key == own);
        let ahead = at.map(|at| {
            let before = queue.iter().take(at);
            before.map(|kv| Ticket {
                stored: kv.key.clone(),
                place: kv.create_revision,
            })
        });
        Ok(Queued {
            meta,
            session_stands,
            sight,
            ahead: ahead.map(Iterator::collect),
            anybody: !queue.is_empty(),
            first: queue.first().map(|kv| kv.key.clone()),
        })
    }
}
