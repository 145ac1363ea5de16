//! Comparisons.

use std::cmp::Ordering;

use etcd_kv::{Compare, CompareOp, KeyValue, LeaseId, Target};

use crate::keyspace::Keyspace;

/// Whether a comparison holds for every key of its range.
pub(crate) fn holds(compare: &Compare, keyspace: &Keyspace) -> bool {
    let mut found = keyspace.within(&compare.range).peekable();
    if found.peek().is_none() {
        // Numbers of a missing key count as 0; a missing value compares with nothing.
        return !matches!(compare.target, Target::Value(_))
            && holds_for(compare, &KeyValue::default());
    }
    found.all(|kv| holds_for(compare, kv))
}

fn holds_for(compare: &Compare, kv: &KeyValue) -> bool {
    let ordering = match &compare.target {
        Target::CreateRevision(revision) => kv.create_revision.cmp(revision),
        Target::Lease(lease) => number(kv.lease).cmp(&number(*lease)),
        Target::ModRevision(revision) => kv.mod_revision.cmp(revision),
        Target::Value(value) => kv.value.cmp(value),
        Target::Version(version) => kv.version.cmp(version),
    };
    match compare.op {
        CompareOp::Equal => ordering == Ordering::Equal,
        CompareOp::Greater => ordering == Ordering::Greater,
        CompareOp::Less => ordering == Ordering::Less,
        CompareOp::NotEqual => ordering != Ordering::Equal,
    }
}

fn number(lease: Option<LeaseId>) -> i64 {
    lease.map_or(0, |LeaseId(id)| id)
}
