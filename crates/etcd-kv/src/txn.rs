use bytes::Bytes;

use crate::key::{
    DeleteRequest, DeleteResponse, Header, KeyRange, PutRequest, PutResponse, RangeRequest,
    RangeResponse,
};
use crate::lease::LeaseId;

/// If all comparisons hold, then these operations, else those; one atomic step either way.
///
/// Flat on purpose: nested transactions slip past access control and quota on servers in use.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Txn {
    /// All must hold.
    pub when: Vec<Compare>,
    /// What is done when they do.
    pub then: Vec<Op>,
    /// What is done when they do not.
    pub otherwise: Vec<Op>,
}

/// A comparison; over a range it must hold for every key in it.
///
/// On a key that does not exist numbers count as 0, and a comparison of the value never holds,
/// whatever the operator. A range without keys counts as one missing key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compare {
    /// Of which keys.
    pub range: KeyRange,
    /// What of them, and with what it is compared.
    pub target: Target,
    /// How.
    pub op: CompareOp,
}

/// What is compared, with what.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// The revision that created the key.
    CreateRevision(i64),
    /// The lease of the key; `None` is 0.
    Lease(Option<LeaseId>),
    /// The revision that last changed the key.
    ModRevision(i64),
    /// The value, byte by byte.
    Value(Bytes),
    /// The version of the key.
    Version(i64),
}

/// How it is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompareOp {
    /// The key's is the same.
    Equal,
    /// The key's is greater.
    Greater,
    /// The key's is less.
    Less,
    /// The key's is another.
    NotEqual,
}

/// One operation of a transaction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Op {
    /// Deletes keys.
    Delete(DeleteRequest),
    /// Writes a key.
    Put(PutRequest),
    /// Reads keys; it sees what the operations before it wrote.
    Range(RangeRequest),
}

/// What one operation of a transaction answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OpResponse {
    /// To a delete.
    Delete(DeleteResponse),
    /// To a write.
    Put(PutResponse),
    /// To a read.
    Range(RangeResponse),
}

/// What a transaction answered.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TxnResponse {
    /// Of the answer.
    pub header: Header,
    /// Whether all comparisons held.
    pub succeeded: bool,
    /// The answers of the operations done, in their order.
    pub responses: Vec<OpResponse>,
}

impl Txn {
    /// Starts a transaction by what must hold.
    pub fn when(comparisons: impl IntoIterator<Item = Compare>) -> Self {
        Self {
            when: comparisons.into_iter().collect(),
            ..Self::default()
        }
    }

    /// What is done when everything holds.
    #[must_use]
    pub fn then(mut self, operations: impl IntoIterator<Item = Op>) -> Self {
        self.then = operations.into_iter().collect();
        self
    }

    /// What is done when something does not hold.
    #[must_use]
    pub fn otherwise(mut self, operations: impl IntoIterator<Item = Op>) -> Self {
        self.otherwise = operations.into_iter().collect();
        self
    }
}

impl Compare {
    /// The key's create revision is this; 0 for a key that does not exist.
    pub fn create_revision(key: impl Into<Bytes>, revision: i64) -> Self {
        Self::equal(KeyRange::key(key), Target::CreateRevision(revision))
    }

    /// The key's mod revision is this; 0 for a key that does not exist.
    pub fn mod_revision(key: impl Into<Bytes>, revision: i64) -> Self {
        Self::equal(KeyRange::key(key), Target::ModRevision(revision))
    }

    /// The key exists and its value is this.
    pub fn value(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self::equal(KeyRange::key(key), Target::Value(value.into()))
    }

    /// The key is bound to this lease.
    pub fn lease(key: impl Into<Bytes>, lease: LeaseId) -> Self {
        Self::equal(KeyRange::key(key), Target::Lease(Some(lease)))
    }

    /// The key exists.
    pub fn exists(key: impl Into<Bytes>) -> Self {
        let target = Target::CreateRevision(0);
        Self {
            range: KeyRange::key(key),
            target,
            op: CompareOp::Greater,
        }
    }

    /// No key starts with these bytes.
    pub fn no_key_below(prefix: impl Into<Bytes>) -> Self {
        Self::equal(KeyRange::prefix(prefix), Target::CreateRevision(0))
    }

    /// What is compared is equal.
    #[must_use]
    pub const fn equal(range: KeyRange, target: Target) -> Self {
        Self {
            range,
            target,
            op: CompareOp::Equal,
        }
    }
}

impl From<RangeRequest> for Op {
    fn from(request: RangeRequest) -> Self {
        Self::Range(request)
    }
}

impl From<PutRequest> for Op {
    fn from(request: PutRequest) -> Self {
        Self::Put(request)
    }
}

impl From<DeleteRequest> for Op {
    fn from(request: DeleteRequest) -> Self {
        Self::Delete(request)
    }
}
