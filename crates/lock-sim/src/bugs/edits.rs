//! What transactions of the etcd store are, by their keys, and the same without a part of them.

use etcd_kv::{Compare, KeyRange, Lease, Op, OpResponse, Target, Txn, TxnResponse};

use super::ServerBug;

/// The same transaction without what the bug leaves out.
pub(super) fn without(bug: ServerBug, mut txn: Txn) -> Txn {
    match bug {
        ServerBug::UnlocksWithoutComparing if deletes_a_lock(&txn) => txn.when.clear(),
        ServerBug::BargesPastTheQueue => {
            let on_queue = |compare: &Compare| matches!(compare.range, KeyRange::Prefix(_));
            txn.when.retain(|compare| !on_queue(compare));
        }
        ServerBug::ComparesNoEpoch if writes_a_lock(&txn) => {
            txn.when
                .retain(|compare| !is_below(&compare.range, "epoch"));
        }
        ServerBug::LocksWithoutComparing if writes_a_lock(&txn) => {
            txn.when.retain(|compare| !is_below(&compare.range, "lock"));
        }
        ServerBug::TakesWithoutATicket if writes_a_lock(&txn) => {
            let on_ticket = |compare: &Compare| {
                let exact = matches!(compare.range, KeyRange::Key(_));
                let exists = compare.target != Target::CreateRevision(0);
                exact && exists && is_below(&compare.range, "wait")
            };
            txn.when.retain(|compare| !on_ticket(compare));
        }
        ServerBug::LocksWithoutALease => {
            for op in &mut txn.then {
                if let Op::Put(put) = op
                    && is_below(&KeyRange::Key(put.key.clone()), "lock")
                {
                    put.lease = Lease::Detached;
                }
            }
        }
        _ => {}
    }
    txn
}

/// Whether a key or range is below this part of its namespace: `/dlock/NAMESPACE/PART/..`.
fn is_below(range: &KeyRange, part: &str) -> bool {
    let (KeyRange::Key(start) | KeyRange::Prefix(start) | KeyRange::Span { start, .. }) = range;
    let parts = start.split(|byte| *byte == b'/').nth(3);
    parts == Some(part.as_bytes())
}

fn writes_a_lock(txn: &Txn) -> bool {
    txn.then.iter().any(|op| match op {
        Op::Put(put) => is_below(&KeyRange::Key(put.key.clone()), "lock"),
        Op::Delete(_) | Op::Range(_) => false,
    })
}

/// Whether it ends one grant and does nothing else.
fn deletes_a_lock(txn: &Txn) -> bool {
    match &*txn.then {
        [Op::Delete(delete)] => is_below(&delete.range, "lock"),
        _ => false,
    }
}

pub(super) fn reads_only(txn: &Txn) -> bool {
    let reads = |op: &Op| matches!(op, Op::Range(_));
    txn.when.is_empty() && txn.then.iter().all(reads)
}

/// Whether it is the read that a keepalive is believed by.
pub(super) fn is_second_look(txn: &Txn) -> bool {
    let first = txn.then.first();
    let at_session = |op: &Op| matches!(op, Op::Range(read) if is_below(&read.range, "session"));
    reads_only(txn) && first.is_some_and(at_session)
}

/// Whether a second look shows the session.
pub(super) fn shows_a_session(answer: &TxnResponse) -> bool {
    match answer.responses.first() {
        Some(OpResponse::Range(range)) => !range.kvs.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use etcd_kv::{DeleteRequest, LeaseId, PutRequest, RangeRequest};

    use super::*;

    fn grant() -> Txn {
        let lock = PutRequest::new("/dlock/n/lock/k", "").with_lease(LeaseId(1));
        Txn::when([
            Compare::mod_revision("/dlock/n/epoch/1", 4),
            Compare::mod_revision("/dlock/n/meta", 2),
            Compare::create_revision("/dlock/n/lock/k", 0),
            Compare::no_key_below("/dlock/n/wait/k/"),
        ])
        .then([lock.into(), RangeRequest::key("/dlock/n/lock/k").into()])
    }

    fn release() -> Txn {
        let delete = DeleteRequest::key("/dlock/n/lock/k");
        Txn::when([Compare::mod_revision("/dlock/n/lock/k", 7)]).then([delete.into()])
    }

    #[test]
    fn each_bug_leaves_out_its_part_and_nothing_else() {
        for (bug, left) in [
            (ServerBug::BargesPastTheQueue, 3),
            (ServerBug::ComparesNoEpoch, 3),
            (ServerBug::LocksWithoutComparing, 3),
            (ServerBug::TakesWithoutATicket, 4),
            (ServerBug::UnlocksWithoutComparing, 4),
            (ServerBug::LocksWithoutALease, 4),
        ] {
            assert_eq!(without(bug, grant()).when.len(), left, "{bug:?}");
        }
        let released = without(ServerBug::UnlocksWithoutComparing, release());
        assert!(released.when.is_empty());
        assert_eq!(
            without(ServerBug::LocksWithoutComparing, release()),
            release()
        );
    }

    #[test]
    fn a_lock_without_a_lease_is_written_without_one() {
        let granted = without(ServerBug::LocksWithoutALease, grant());
        let Op::Put(put) = &granted.then[0] else {
            panic!("{granted:?}")
        };
        assert_eq!(put.lease, Lease::Detached);
    }

    #[test]
    fn a_ticket_that_is_taken_is_not_compared() {
        let take = Txn::when([
            Compare::create_revision("/dlock/n/lock/k", 0),
            Compare::create_revision("/dlock/n/wait/k/1", 5),
        ])
        .then(grant().then);
        let taken = without(ServerBug::TakesWithoutATicket, take);
        assert_eq!(taken.when, [Compare::create_revision("/dlock/n/lock/k", 0)]);
    }

    #[test]
    fn second_looks_are_told_from_other_reads() {
        let look = Txn::default().then([
            RangeRequest::key("/dlock/n/session/1").into(),
            RangeRequest::key("/dlock/n/meta").into(),
        ]);
        assert!(is_second_look(&look) && reads_only(&look));
        let other = Txn::default().then([RangeRequest::key("/dlock/n/lock/k").into()]);
        assert!(!is_second_look(&other) && reads_only(&other));
        assert!(!reads_only(&grant()));
    }
}
