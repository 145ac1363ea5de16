//! What is refused whatever the state.

use std::collections::BTreeSet;

use bytes::Bytes;
use etcd_kv::{Compare, DeleteRequest, KeyRange, KvError, Op, PutRequest, Target, Txn, prefix_end};

use crate::error::invalid;

/// The most comparisons, and the most operations in either branch.
const MAX_TXN_OPS: usize = 128;
/// The most bytes of a request that writes: 1.5 MiB.
const MAX_REQUEST_BYTES: usize = 3 * 512 * 1024;
/// The longest ttl of a lease, in seconds.
const MAX_LEASE_TTL: i64 = 9_000_000_000;

pub(crate) fn check_range(range: &KeyRange) -> Result<(), KvError> {
    match range {
        KeyRange::Key(key) => check_key(key),
        // The empty prefix means every key.
        KeyRange::Prefix(_) => Ok(()),
        KeyRange::Span { start, .. } => check_key(start),
    }
}

/// A watch of no key at all is refused; one of the empty key is not, and shows nothing.
pub(crate) fn check_watch(range: &KeyRange) -> Result<(), KvError> {
    match range {
        KeyRange::Span { start, end } if end <= start => Err(invalid("watcher range is empty")),
        KeyRange::Key(_) | KeyRange::Prefix(_) | KeyRange::Span { .. } => Ok(()),
    }
}

pub(crate) fn check_put(request: &PutRequest) -> Result<(), KvError> {
    check_key(&request.key)?;
    check_size(put_size(request))
}

pub(crate) fn check_delete(request: &DeleteRequest) -> Result<(), KvError> {
    check_range(&request.range)?;
    check_size(range_size(&request.range))
}

pub(crate) fn check_txn(txn: &Txn) -> Result<(), KvError> {
    let Txn {
        when,
        then,
        otherwise,
    } = txn;
    if when.len().max(then.len()).max(otherwise.len()) > MAX_TXN_OPS {
        return Err(invalid("too many operations in txn request"));
    }
    for compare in when {
        check_range(&compare.range)?;
    }
    for op in then.iter().chain(otherwise) {
        match op {
            Op::Delete(request) => check_range(&request.range)?,
            Op::Put(request) => check_key(&request.key)?,
            Op::Range(request) => check_range(&request.range)?,
        }
    }
    check_distinct(then)?;
    check_distinct(otherwise)?;
    let comparisons = when.iter().map(compare_size).sum::<usize>();
    let operations = then.iter().chain(otherwise).map(op_size).sum::<usize>();
    check_size(comparisons + operations)
}

pub(crate) fn check_ttl(ttl: i64) -> Result<(), KvError> {
    if ttl > MAX_LEASE_TTL {
        Err(invalid("too large lease TTL"))
    } else {
        Ok(())
    }
}

fn check_key(key: &Bytes) -> Result<(), KvError> {
    if key.is_empty() {
        Err(invalid("key is not provided"))
    } else {
        Ok(())
    }
}

/// In one branch no key is put twice, or put and deleted, in whatever order. As on a real server,
/// what deletes everything from a key on is overlooked.
fn check_distinct(branch: &[Op]) -> Result<(), KvError> {
    let deletes = |op: &Op, key: &Bytes| match op {
        Op::Delete(request) => request.range.contains(key) && has_end(&request.range),
        Op::Put(_) | Op::Range(_) => false,
    };
    let deleted = |key: &Bytes| branch.iter().any(|op| deletes(op, key));
    let mut put = BTreeSet::new();
    for op in branch {
        if let Op::Put(PutRequest { key, .. }) = op
            && (!put.insert(key) || deleted(key))
        {
            return Err(invalid("duplicate key given in txn request"));
        }
    }
    Ok(())
}

fn has_end(range: &KeyRange) -> bool {
    match range {
        KeyRange::Key(_) | KeyRange::Span { .. } => true,
        KeyRange::Prefix(prefix) => prefix_end(prefix).is_some(),
    }
}

fn check_size(bytes: usize) -> Result<(), KvError> {
    if bytes > MAX_REQUEST_BYTES {
        Err(invalid("request is too large"))
    } else {
        Ok(())
    }
}

fn compare_size(compare: &Compare) -> usize {
    let value = match &compare.target {
        Target::Value(value) => value.len(),
        Target::CreateRevision(_)
        | Target::Lease(_)
        | Target::ModRevision(_)
        | Target::Version(_) => 0,
    };
    range_size(&compare.range) + value
}

fn op_size(op: &Op) -> usize {
    match op {
        Op::Delete(request) => range_size(&request.range),
        Op::Put(request) => put_size(request),
        Op::Range(request) => range_size(&request.range),
    }
}

fn put_size(request: &PutRequest) -> usize {
    request.key.len() + request.value.len()
}

fn range_size(range: &KeyRange) -> usize {
    match range {
        KeyRange::Key(key) | KeyRange::Prefix(key) => key.len(),
        KeyRange::Span { start, end } => start.len() + end.len(),
    }
}
