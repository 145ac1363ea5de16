use bytes::Bytes;

use crate::lease::LeaseId;

/// What every answer carries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Header {
    /// Names the cluster.
    pub cluster_id: u64,
    /// Names the member that answered.
    pub member_id: u64,
    /// The store's revision when it answered; after a write, that of the write.
    pub revision: i64,
    /// The leader's term as the member had applied it.
    pub raft_term: u64,
}

/// A key with its value and its history in numbers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
    /// The revision that created it.
    pub create_revision: i64,
    /// The revision that last changed it.
    pub mod_revision: i64,
    /// How often it was put since it was created; 1 for a new key.
    pub version: i64,
    /// The lease it is bound to.
    pub lease: Option<LeaseId>,
}

/// One key or many, in byte order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyRange {
    /// This key.
    Key(Bytes),
    /// Every key that starts with these bytes.
    Prefix(Bytes),
    /// Every key from `start` on and before `end`.
    Span {
        /// The first key.
        start: Bytes,
        /// The first key that is no longer meant.
        end: Bytes,
    },
}

/// Whether a read goes through the leader.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Consistency {
    /// It shows everything that was answered before it was sent.
    #[default]
    Linearizable,
    /// Whatever the member has; it may be out of date.
    Serializable,
}

/// The order of a range's answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Order {
    /// By key, ascending.
    #[default]
    Key,
    /// By create revision, ascending.
    CreateRevision,
    /// By create revision, descending.
    NewestFirst,
}

/// Reads keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RangeRequest {
    /// Which.
    pub range: KeyRange,
    /// At most so many; `None` for all.
    pub limit: Option<u32>,
    /// As of this revision; `None` for the present.
    pub revision: Option<i64>,
    /// In which order; the limit counts in it.
    pub order: Order,
    /// Through the leader or not.
    pub consistency: Consistency,
    /// Leave the values out.
    pub keys_only: bool,
    /// Leave everything out but the count.
    pub count_only: bool,
}

/// The answer to a [`RangeRequest`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RangeResponse {
    /// Of the answer.
    pub header: Header,
    /// The keys found, up to the limit.
    pub kvs: Vec<KeyValue>,
    /// Whether the limit cut some off.
    pub more: bool,
    /// How many there are in all, whatever the limit.
    pub count: u64,
}

/// The answer to a read of one key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GetResponse {
    /// Of the answer.
    pub header: Header,
    /// The key, if it exists.
    pub kv: Option<KeyValue>,
}

/// Writes a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PutRequest {
    /// The key.
    pub key: Bytes,
    /// Its new value.
    pub value: Bytes,
    /// What becomes of its binding.
    pub lease: Lease,
    /// Answer with what was there before.
    pub prev_kv: bool,
}

/// The lease of a key that is written. A key has at most one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Lease {
    /// None; a binding that it had ends.
    #[default]
    Detached,
    /// This one.
    Attached(LeaseId),
    /// The one that it has; the key must exist.
    Kept,
}

/// The answer to a [`PutRequest`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PutResponse {
    /// Of the answer.
    pub header: Header,
    /// What was there before, if asked for.
    pub prev_kv: Option<KeyValue>,
}

/// Deletes keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeleteRequest {
    /// Which.
    pub range: KeyRange,
    /// Answer with what was there before.
    pub prev_kv: bool,
}

/// The answer to a [`DeleteRequest`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeleteResponse {
    /// Of the answer.
    pub header: Header,
    /// How many were deleted.
    pub deleted: u64,
    /// What was there before, if asked for.
    pub prev_kvs: Vec<KeyValue>,
}

impl KeyRange {
    /// This key.
    pub fn key(key: impl Into<Bytes>) -> Self {
        Self::Key(key.into())
    }

    /// Every key that starts with these bytes.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Self::Prefix(prefix.into())
    }

    /// Whether `key` is meant.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Key(one) => one == key,
            Self::Prefix(prefix) => key.starts_with(prefix),
            Self::Span { start, end } => **start <= *key && *key < **end,
        }
    }
}

impl RangeRequest {
    /// Reads all of a range, linearizably, in key order.
    #[must_use]
    pub const fn new(range: KeyRange) -> Self {
        Self {
            range,
            limit: None,
            revision: None,
            order: Order::Key,
            consistency: Consistency::Linearizable,
            keys_only: false,
            count_only: false,
        }
    }

    /// Reads one key, linearizably.
    pub fn key(key: impl Into<Bytes>) -> Self {
        Self::new(KeyRange::key(key))
    }

    /// Reads every key that starts with these bytes, linearizably, in key order.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Self::new(KeyRange::prefix(prefix))
    }
}

impl PutRequest {
    /// Writes a key without a lease.
    pub fn new(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            lease: Lease::Detached,
            prev_kv: false,
        }
    }

    /// The same, bound to a lease.
    #[must_use]
    pub const fn with_lease(mut self, lease: LeaseId) -> Self {
        self.lease = Lease::Attached(lease);
        self
    }
}

impl DeleteRequest {
    /// Deletes a range.
    #[must_use]
    pub const fn new(range: KeyRange) -> Self {
        Self {
            range,
            prev_kv: false,
        }
    }

    /// Deletes one key.
    pub fn key(key: impl Into<Bytes>) -> Self {
        Self::new(KeyRange::key(key))
    }
}

/// The first key after every key that starts with `prefix`; `None` when there is none.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_its_successor() {
        assert_eq!(prefix_end(b"wait/a/").as_deref(), Some(&b"wait/a0"[..]));
        assert_eq!(prefix_end(b"a\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!(prefix_end(b"\xff\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }

    #[test]
    fn ranges_know_their_keys() {
        assert!(KeyRange::prefix("a").contains(b"ab"));
        assert!(!KeyRange::key("a").contains(b"ab"));
        let span = KeyRange::Span {
            start: "b".into(),
            end: "d".into(),
        };
        assert!(span.contains(b"b") && span.contains(b"czz") && !span.contains(b"d"));
    }
}
