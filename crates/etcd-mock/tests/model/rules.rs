//! What the naive model says of one comparison, one operation, one read.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bytes::Bytes;
use etcd_kv::{
    Compare, CompareOp, DeleteRequest, DeleteResponse, Header, KeyRange, KeyValue, KvErrorKind,
    Lease, LeaseId, Op, Order, PutRequest, PutResponse, RangeRequest, RangeResponse, Target,
};

/// All keys of one revision.
pub(crate) type Keys = BTreeMap<Bytes, KeyValue>;

/// Keys as they were after each of the changes of one revision, in their order.
pub(crate) type Changes = Vec<(Bytes, Option<KeyValue>)>;

pub(crate) const INVALID: KvErrorKind = KvErrorKind::InvalidArgument;

/// Whether a key is in a range.
pub(crate) fn within(range: &KeyRange, key: &Bytes) -> bool {
    match range {
        KeyRange::Key(one) => key == one,
        KeyRange::Prefix(prefix) => key.len() >= prefix.len() && key[..prefix.len()] == prefix[..],
        KeyRange::Span { start, end } => key >= start && key < end,
    }
}

pub(crate) fn check_range(range: &KeyRange) -> Result<(), KvErrorKind> {
    match range {
        KeyRange::Key(key) if key.is_empty() => Err(INVALID),
        KeyRange::Span { start, .. } if start.is_empty() => Err(INVALID),
        _ => Ok(()),
    }
}

/// Whether a range has everything from its first key on.
fn is_without_end(range: &KeyRange) -> bool {
    matches!(range, KeyRange::Prefix(prefix) if prefix.iter().all(|byte| *byte == 0xff))
}

/// Whether a branch puts a key that it also puts or deletes elsewhere. It is not noticed when that
/// deletes everything from a key on.
pub(crate) fn clashes(branch: &[Op]) -> bool {
    branch.iter().enumerate().any(|(at, op)| {
        let Op::Put(put) = op else { return false };
        branch
            .iter()
            .enumerate()
            .any(|(other_at, other)| match other {
                Op::Delete(delete) => {
                    within(&delete.range, &put.key) && !is_without_end(&delete.range)
                }
                Op::Put(other) => other_at != at && other.key == put.key,
                Op::Range(_) => false,
            })
    })
}

pub(crate) fn compares(compare: &Compare, kv: &KeyValue) -> bool {
    let lease = |lease: Option<LeaseId>| lease.map_or(0, |id| id.0);
    let is = match &compare.target {
        Target::CreateRevision(number) => kv.create_revision.cmp(number),
        Target::Lease(id) => lease(kv.lease).cmp(&lease(*id)),
        Target::ModRevision(number) => kv.mod_revision.cmp(number),
        Target::Value(value) => kv.value[..].cmp(&value[..]),
        Target::Version(number) => kv.version.cmp(number),
    };
    match compare.op {
        CompareOp::Equal => is == Ordering::Equal,
        CompareOp::Greater => is == Ordering::Greater,
        CompareOp::Less => is == Ordering::Less,
        CompareOp::NotEqual => is != Ordering::Equal,
    }
}

pub(crate) fn put(
    request: &PutRequest,
    revision: i64,
    keys: &mut Keys,
    changed: &mut Changes,
) -> PutResponse {
    let before = keys.get(&request.key).cloned();
    let kv = KeyValue {
        key: request.key.clone(),
        value: request.value.clone(),
        create_revision: before.as_ref().map_or(revision, |kv| kv.create_revision),
        mod_revision: revision,
        version: before.as_ref().map_or(1, |kv| kv.version + 1),
        lease: match request.lease {
            Lease::Attached(id) => Some(id),
            Lease::Detached => None,
            Lease::Kept => before.as_ref().and_then(|kv| kv.lease),
        },
    };
    keys.insert(request.key.clone(), kv.clone());
    changed.push((request.key.clone(), Some(kv)));
    PutResponse {
        header: Header::default(),
        prev_kv: if request.prev_kv { before } else { None },
    }
}

pub(crate) fn delete(
    request: &DeleteRequest,
    keys: &mut Keys,
    changed: &mut Changes,
) -> DeleteResponse {
    let doomed: Vec<KeyValue> = keys
        .values()
        .filter(|kv| within(&request.range, &kv.key))
        .cloned()
        .collect();
    for kv in &doomed {
        keys.remove(&kv.key);
        changed.push((kv.key.clone(), None));
    }
    DeleteResponse {
        header: Header::default(),
        deleted: count(&doomed),
        prev_kvs: if request.prev_kv { doomed } else { Vec::new() },
    }
}

pub(crate) fn read(request: &RangeRequest, keys: &Keys) -> RangeResponse {
    let mut found: Vec<KeyValue> = keys
        .values()
        .filter(|kv| within(&request.range, &kv.key))
        .cloned()
        .collect();
    let count = count(&found);
    found.sort_by(|a, b| {
        let by_creation = a.create_revision.cmp(&b.create_revision);
        let ordered = match request.order {
            Order::Key => Ordering::Equal,
            Order::CreateRevision => by_creation,
            Order::NewestFirst => by_creation.reverse(),
        };
        ordered.then(a.key.cmp(&b.key))
    });
    let limit = request.limit.filter(|&limit| limit > 0);
    let more = !request.count_only && limit.is_some_and(|limit| u64::from(limit) < count);
    if let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) {
        found.truncate(limit);
    }
    if request.keys_only {
        found.iter_mut().for_each(|kv| kv.value = Bytes::new());
    }
    RangeResponse {
        header: Header::default(),
        kvs: if request.count_only {
            Vec::new()
        } else {
            found
        },
        more,
        count,
    }
}

fn count(kvs: &[KeyValue]) -> u64 {
    u64::try_from(kvs.len()).unwrap_or(u64::MAX)
}
