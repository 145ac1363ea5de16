//! What replies have in common.

use etcd_kv::{Header, KeyValue, OpResponse, RangeResponse, TxnResponse};
use lock_spi::{AttemptId, FencingToken, Result};

use crate::codec::{LockEntry, decode_floor};
use crate::error::nonsense;

/// What one attempt sees of its key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Sight {
    /// Who holds it.
    pub(crate) lock: Option<LockEntry>,
    pub(crate) floor: Option<FencingToken>,
    /// The create revision of the attempt's ticket.
    pub(crate) place: Option<i64>,
}

impl Sight {
    /// The lock, when this attempt holds it.
    pub(crate) fn held_by(&self, attempt: AttemptId) -> Option<&LockEntry> {
        self.lock
            .as_ref()
            .filter(|entry| entry.value.attempt == attempt)
    }
}

/// What became of a request for the lock.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Claim {
    Granted(Minted),
    Refused(Box<Refusal>),
}

/// A grant that was just made, not yet checked against the floor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Minted {
    /// The counter of its token.
    pub(crate) revision: i64,
    pub(crate) floor: Option<FencingToken>,
}

/// Why a creating request did nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Refusal {
    /// The session's epoch, 0 when there is none; `None` where it was not compared.
    pub(crate) epoch: Option<i64>,
    pub(crate) meta: Option<KeyValue>,
    pub(crate) sight: Sight,
}

/// The answers of a transaction's operations, taken in their order.
pub(super) struct Replies {
    pub(super) header: Header,
    rest: std::vec::IntoIter<OpResponse>,
}

impl Replies {
    pub(super) fn of(answer: TxnResponse) -> Self {
        Self {
            header: answer.header,
            rest: answer.responses.into_iter(),
        }
    }

    /// Passes over a write.
    pub(super) fn write(&mut self) -> Result<()> {
        match self.rest.next() {
            Some(OpResponse::Put(_) | OpResponse::Delete(_)) => Ok(()),
            _ => Err(nonsense("a write was not answered as a write")),
        }
    }

    pub(super) fn range(&mut self) -> Result<RangeResponse> {
        match self.rest.next() {
            Some(OpResponse::Range(range)) => Ok(range),
            _ => Err(nonsense("a read was not answered as a read")),
        }
    }

    pub(super) fn kv(&mut self) -> Result<Option<KeyValue>> {
        Ok(self.range()?.kvs.into_iter().next())
    }

    pub(super) fn lock(&mut self) -> Result<Option<LockEntry>> {
        self.kv()?.as_ref().map(LockEntry::read).transpose()
    }

    pub(super) fn floor(&mut self) -> Result<Option<FencingToken>> {
        let kv = self.kv()?;
        kv.map(|kv| decode_floor(&kv.value)).transpose()
    }

    /// The create revision of a key, when it exists.
    pub(super) fn created(&mut self) -> Result<Option<i64>> {
        Ok(self.kv()?.map(|kv| kv.create_revision))
    }

    /// The mod revision of a key, 0 when it does not exist.
    pub(super) fn modified(&mut self) -> Result<i64> {
        Ok(self.kv()?.map_or(0, |kv| kv.mod_revision))
    }

    /// Lock, floor and ticket, read in this order.
    pub(super) fn sight(&mut self) -> Result<Sight> {
        Ok(Sight {
            lock: self.lock()?,
            floor: self.floor()?,
            place: self.created()?,
        })
    }

    /// Why a creating request did nothing, with the epoch where that was compared.
    pub(super) fn refusal(&mut self, with_epoch: bool) -> Result<Box<Refusal>> {
        Ok(Box::new(Refusal {
            epoch: with_epoch.then(|| self.modified()).transpose()?,
            meta: self.kv()?,
            sight: self.sight()?,
        }))
    }

    /// A lock that this transaction put and read back, and its floor.
    pub(super) fn minted(&mut self) -> Result<Minted> {
        let revision = self.modified()?;
        if revision != self.header.revision {
            return Err(nonsense("a lock was put and is not there"));
        }
        let floor = self.floor()?;
        Ok(Minted { revision, floor })
    }
}
