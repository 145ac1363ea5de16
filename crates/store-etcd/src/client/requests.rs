//! What is asked, in etcd-client's terms.

use bytes::Bytes;
use etcd_client::{
    Compare as EtcdCompare, CompareOp as EtcdCompareOp, DeleteOptions, GetOptions, PutOptions,
    SortOrder, SortTarget, Txn as EtcdTxn, TxnOp, WatchOptions,
};
use etcd_kv::{
    Compare, CompareOp, Consistency, DeleteRequest, KeyRange, Lease, Op, Order, PutRequest,
    RangeRequest, Target, Txn, WatchRequest, prefix_end,
};

/// The key that a range starts with, and its end as etcd wants it: nothing for a single key, and
/// one zero byte for everything from the key on.
pub(super) fn bounds(range: KeyRange) -> (Vec<u8>, Vec<u8>) {
    const FIRST: &[u8] = b"\0";
    match range {
        KeyRange::Key(key) => (key.into(), Vec::new()),
        KeyRange::Prefix(prefix) if prefix.is_empty() => (FIRST.into(), FIRST.into()),
        KeyRange::Prefix(prefix) => {
            let end = prefix_end(&prefix).unwrap_or_else(|| Bytes::from_static(FIRST));
            (prefix.into(), end.into())
        }
        // A span that is empty must not look like a single key, nor like everything.
        KeyRange::Span { start, end } if end <= start => {
            let mut start = Vec::from(start);
            if start == FIRST {
                start.extend(FIRST);
            }
            (start.clone(), start)
        }
        KeyRange::Span { start, end } => (start.into(), end.into()),
    }
}

/// The key and the rest of a read.
pub(super) fn get(request: RangeRequest) -> (Vec<u8>, GetOptions) {
    let RangeRequest {
        range,
        limit,
        revision,
        order,
        consistency,
        keys_only,
        count_only,
    } = request;
    let (key, end) = bounds(range);
    let mut options = GetOptions::new().with_range(end);
    if let Some(limit) = limit {
        options = options.with_limit(limit.into());
    }
    if let Some(revision) = revision {
        options = options.with_revision(revision);
    }
    options = match order {
        Order::Key => options,
        Order::CreateRevision => options.with_sort(SortTarget::Create, SortOrder::Ascend),
        Order::NewestFirst => options.with_sort(SortTarget::Create, SortOrder::Descend),
    };
    options = match consistency {
        Consistency::Linearizable => options,
        Consistency::Serializable => options.with_serializable(),
    };
    if keys_only {
        options = options.with_keys_only();
    }
    if count_only {
        options = options.with_count_only();
    }
    (key, options)
}

/// The key, the value and the rest of a write.
pub(super) fn put(request: PutRequest) -> (Bytes, Bytes, PutOptions) {
    let PutRequest {
        key,
        value,
        lease,
        prev_kv,
    } = request;
    let mut options = match lease {
        Lease::Detached => PutOptions::new(),
        Lease::Attached(lease) => PutOptions::new().with_lease(lease.0),
        Lease::Kept => PutOptions::new().with_ignore_lease(),
    };
    if prev_kv {
        options = options.with_prev_key();
    }
    (key, value, options)
}

/// The key and the rest of a deletion.
pub(super) fn delete(request: DeleteRequest) -> (Vec<u8>, DeleteOptions) {
    let DeleteRequest { range, prev_kv } = request;
    let (key, end) = bounds(range);
    let mut options = DeleteOptions::new().with_range(end);
    if prev_kv {
        options = options.with_prev_key();
    }
    (key, options)
}

pub(super) fn txn(txn: Txn) -> EtcdTxn {
    let Txn {
        when,
        then,
        otherwise,
    } = txn;
    let compares: Vec<_> = when.into_iter().map(compare).collect();
    let ops = |ops: Vec<Op>| ops.into_iter().map(op).collect::<Vec<_>>();
    EtcdTxn::new()
        .when(compares)
        .and_then(ops(then))
        .or_else(ops(otherwise))
}

/// Whether any member can answer by itself: everything asked for is a serializable read.
pub(super) fn is_serializable(txn: &Txn) -> bool {
    is_read_only(txn)
        && txn.then.iter().chain(&txn.otherwise).all(
            |op| matches!(op, Op::Range(range) if range.consistency == Consistency::Serializable),
        )
}

/// Whether neither branch writes.
pub(super) fn is_read_only(txn: &Txn) -> bool {
    let mut ops = txn.then.iter().chain(&txn.otherwise);
    ops.all(|op| matches!(op, Op::Range(_)))
}

/// The key and the rest of a watch.
pub(super) fn watch(request: WatchRequest) -> (Vec<u8>, WatchOptions) {
    let WatchRequest {
        range,
        start,
        prev_kv,
    } = request;
    let (key, end) = bounds(range);
    // Without fragments what one lease takes with it may be more than a message can carry.
    let mut options = WatchOptions::new().with_range(end).with_fragment();
    if let Some(start) = start {
        options = options.with_start_revision(start);
    }
    if prev_kv {
        options = options.with_prev_key();
    }
    (key, options)
}

fn compare(compare: Compare) -> EtcdCompare {
    let Compare { range, target, op } = compare;
    let (key, end) = bounds(range);
    let op = match op {
        CompareOp::Equal => EtcdCompareOp::Equal,
        CompareOp::Greater => EtcdCompareOp::Greater,
        CompareOp::Less => EtcdCompareOp::Less,
        CompareOp::NotEqual => EtcdCompareOp::NotEqual,
    };
    let compare = match target {
        Target::CreateRevision(revision) => EtcdCompare::create_revision(key, op, revision),
        Target::Lease(lease) => EtcdCompare::lease(key, op, lease.map_or(0, |lease| lease.0)),
        Target::ModRevision(revision) => EtcdCompare::mod_revision(key, op, revision),
        Target::Value(value) => EtcdCompare::value(key, op, value),
        Target::Version(version) => EtcdCompare::version(key, op, version),
    };
    compare.with_range(end)
}

fn op(op: Op) -> TxnOp {
    match op {
        Op::Delete(request) => {
            let (key, options) = delete(request);
            TxnOp::delete(key, Some(options))
        }
        Op::Put(request) => {
            let (key, value, options) = put(request);
            TxnOp::put(key, value, Some(options))
        }
        Op::Range(request) => {
            let (key, options) = get(request);
            TxnOp::get(key, Some(options))
        }
    }
}

#[cfg(test)]
mod tests {
    use etcd_kv::LeaseId;

    use super::*;

    #[test]
    fn ranges_have_the_bounds_that_etcd_means_by_them() {
        let span = |start: &'static str, end: &'static str| KeyRange::Span {
            start: start.into(),
            end: end.into(),
        };
        for (range, key, end) in [
            (KeyRange::key("a"), "a", ""),
            (KeyRange::prefix("wait/a/"), "wait/a/", "wait/a0"),
            (KeyRange::prefix(""), "\0", "\0"),
            (KeyRange::prefix(&b"\xff"[..]), "\u{0}", "\0"),
            (span("b", "d"), "b", "d"),
            (span("b", "b"), "b", "b"),
            (span("b", ""), "b", "b"),
            (span("\0", ""), "\0\0", "\0\0"),
        ] {
            let (found_key, found_end) = bounds(range.clone());
            if range != KeyRange::prefix(&b"\xff"[..]) {
                assert_eq!(found_key, key.as_bytes(), "{range:?}");
            }
            assert_eq!(found_end, end.as_bytes(), "{range:?}");
        }
    }

    #[test]
    fn a_read_takes_over_all_that_was_asked() {
        let (key, options) = get(RangeRequest {
            limit: Some(7),
            revision: Some(9),
            order: Order::CreateRevision,
            consistency: Consistency::Serializable,
            keys_only: true,
            count_only: true,
            range: KeyRange::prefix("a"),
        });
        let expected = GetOptions::new()
            .with_range("b")
            .with_limit(7)
            .with_revision(9)
            .with_sort(SortTarget::Create, SortOrder::Ascend)
            .with_serializable()
            .with_keys_only()
            .with_count_only();
        assert_eq!(key, b"a");
        assert_eq!(format!("{options:?}"), format!("{expected:?}"));
        let (_, plain) = get(RangeRequest::key("a"));
        let expected = GetOptions::new().with_range("");
        assert_eq!(format!("{plain:?}"), format!("{expected:?}"));
    }

    #[test]
    fn a_write_says_what_becomes_of_the_lease() {
        let request = PutRequest::new("k", "v");
        for (lease, expected) in [
            (Lease::Detached, PutOptions::new()),
            (Lease::Attached(LeaseId(5)), PutOptions::new().with_lease(5)),
            (Lease::Kept, PutOptions::new().with_ignore_lease()),
        ] {
            let request = PutRequest {
                lease,
                ..request.clone()
            };
            let (key, value, options) = put(request);
            assert_eq!((&*key, &*value), (&b"k"[..], &b"v"[..]));
            assert_eq!(format!("{options:?}"), format!("{expected:?}"), "{lease:?}");
        }
    }

    #[test]
    fn only_serializable_reads_are_left_to_any_member() {
        let linearizable = RangeRequest::key("a");
        let serializable = RangeRequest {
            consistency: Consistency::Serializable,
            ..RangeRequest::key("a")
        };
        let of = |ops: Vec<Op>| Txn::when([]).then(ops.clone()).otherwise(ops);
        let local = of(vec![serializable.clone().into()]);
        assert!(is_serializable(&local) && is_read_only(&local));
        let mixed = of(vec![serializable.into(), linearizable.into()]);
        assert!(!is_serializable(&mixed) && is_read_only(&mixed));
        let writes = of(vec![PutRequest::new("a", "").into()]);
        assert!(!is_serializable(&writes) && !is_read_only(&writes));
    }

    #[test]
    fn a_transaction_keeps_its_comparisons_and_both_branches() {
        let asked = Txn::when([
            Compare::create_revision("a", 3),
            Compare::no_key_below("q/"),
            Compare {
                op: CompareOp::NotEqual,
                ..Compare::lease("a", LeaseId(4))
            },
        ])
        .then([DeleteRequest::key("a").into()])
        .otherwise([RangeRequest::prefix("q/").into()]);
        let expected = EtcdTxn::new()
            .when([
                EtcdCompare::create_revision("a", EtcdCompareOp::Equal, 3),
                EtcdCompare::create_revision("q/", EtcdCompareOp::Equal, 0).with_range("q0"),
                EtcdCompare::lease("a", EtcdCompareOp::NotEqual, 4),
            ])
            .and_then([TxnOp::delete("a", None)])
            .or_else([TxnOp::get("q/", Some(GetOptions::new().with_range("q0")))]);
        assert_eq!(format!("{:?}", txn(asked)), format!("{expected:?}"));
    }
}
